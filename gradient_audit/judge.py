"""The judgement: a function of the record, which finds what is wrong, doubtful or wasteful."""

from collections import defaultdict
from dataclasses import replace

from torch import nn

from gradient_audit import owners, players, unused, uses
from gradient_audit.coverage import not_run
from gradient_audit.facts import Facts
from gradient_audit.findings import KINDS, SEVERITIES, Finding, joined
from gradient_audit.mistakes.raised import raised_errors
from gradient_audit.record import Record

# In this order: an optimizer that is idle excuses what is dead or wasted because of it, and dead terms are no targets.
QUESTIONS = (
    uses.idle_optimizers,
    players.mixed_players,
    uses.wrong_steps,
    uses.edited_gradients,
    unused.dead_passes,
    unused.dead_terms,
    owners.owners,
    owners.plain_leaves,
    owners.shared_networks,
    uses.renewed_optimizers,
    unused.unaveraged_networks,
    unused.unused_graphs,
    unused.kept_graphs,
    unused.retained_graphs,
    unused.late_freezing,
    raised_errors,
)


def judge(record: Record, networks: dict[str, nn.Module], *, ended: bool = True) -> tuple[list[Finding], str]:
    """Fill in the cells of the record's events and terms, and return the findings, and what they are not about.

    The findings are in order: what raised, errors, the others. networks: by name. ended: whether nothing is to follow.
    """
    facts = Facts(record, networks, ended)
    merged: dict[Finding, list[str]] = defaultdict(list)  # the networks of which the same is told
    for finding in (finding for question in QUESTIONS for finding in question(facts)):
        alike = replace(finding, networks=() if finding.severity == "waste" else finding.networks)
        merged[alike] += [name for name in finding.networks if name not in merged[alike]]
    found = [replace(f, networks=tuple(n), text=f.text.replace("{}", joined(n))) for f, n in merged.items()]
    found.sort(key=lambda f: (SEVERITIES.index(f.severity), not f.facts, [*KINDS].index(f.kind)))
    return found, not_run(facts)
