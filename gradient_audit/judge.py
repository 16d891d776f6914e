"""The judgement: a function of the record, which finds what is wrong, doubtful or wasteful."""

from collections import defaultdict
from dataclasses import replace

from torch import nn

from gradient_audit.coverage import not_run
from gradient_audit.edits import edited_gradients
from gradient_audit.facts import Facts
from gradient_audit.findings import KINDS, SEVERITIES, Finding, joined
from gradient_audit.mistakes.raised import raised_errors
from gradient_audit.owners import owners, plain_leaves, shared_networks
from gradient_audit.players import mixed_players
from gradient_audit.record import Record
from gradient_audit.terms import dead_passes, dead_terms
from gradient_audit.unused import kept_graphs, late_freezing, retained_graphs, unaveraged_networks, unused_graphs
from gradient_audit.uses import idle_optimizers, renewed_optimizers, wrong_steps

# In this order: an optimizer that is idle excuses what is dead or wasted because of it, and dead terms are no targets.
QUESTIONS = (
    idle_optimizers,
    mixed_players,
    wrong_steps,
    edited_gradients,
    dead_passes,
    dead_terms,
    owners,
    plain_leaves,
    shared_networks,
    renewed_optimizers,
    unaveraged_networks,
    unused_graphs,
    kept_graphs,
    retained_graphs,
    late_freezing,
    raised_errors,
)


def judge(record: Record, networks: dict[str, nn.Module], *, ended: bool = True) -> list[Finding]:
    """Fill in the cells of the record's events and terms, and return the findings: what raised, errors, the others.

    networks: by name. ended: whether nothing is to follow.
    """
    facts = Facts(record, networks, ended)
    record.not_run = not_run(facts)
    merged: dict[Finding, list[str]] = defaultdict(list)  # the networks of which the same is told
    for finding in (finding for question in QUESTIONS for finding in question(facts)):
        alike = replace(finding, networks=() if finding.severity == "waste" else finding.networks)
        merged[alike] += [name for name in finding.networks if name not in merged[alike]]
    found = [replace(f, networks=tuple(n), text=f.text.replace("{}", joined(n))) for f, n in merged.items()]
    return sorted(found, key=lambda f: (SEVERITIES.index(f.severity), not f.facts, [*KINDS].index(f.kind)))
