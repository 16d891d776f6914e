"""The judgement: a function of the record, which finds what is wrong, doubtful or wasteful, and what did not run."""

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from torch import nn

from gradient_audit import owners, uses
from gradient_audit.facts import Facts
from gradient_audit.findings import KINDS, SEVERITIES, Finding, joined
from gradient_audit.mistakes.raised import raised_errors
from gradient_audit.record import Event, Pass, Record

CALLS = ("grad", "autograd.grad", "torch.autograd.grad")
RULES = (
    raised_errors,
    uses.wrong_steps,
    uses.missing_gradients,
    uses.still_layers,
    uses.idle_optimizers,
    uses.edited_gradients,
    uses.dead_passes,
    uses.dead_terms,
    uses.unused_graphs,
    uses.kept_graphs,
    owners.mixed_players,
    owners.owners,
    owners.plain_leaves,
    owners.shared_networks,
)


def judge(
    record: Record, networks: dict[str, nn.Module], *, ended: bool = True
) -> tuple[list[Finding], str, list[Event]]:
    """Return the findings, what raised first, then errors; what they are not about; and the events, for the table."""
    facts = Facts(record, networks, ended)
    merged: dict[Finding, list[str]] = defaultdict(list)  # the networks of which the same is told
    for finding in (finding for rule in RULES for finding in rule(facts)):
        alike = replace(finding, networks=() if finding.severity == "waste" else finding.networks)
        merged[alike] += [name for name in finding.networks if name not in merged[alike]]
    found = [replace(f, networks=tuple(n), text=f.text.replace("{}", joined(n))) for f, n in merged.items()]
    found.sort(key=lambda f: ([*SEVERITIES].index(f.severity), not f.facts, [*KINDS].index(f.kind)))
    dead = {id(term) for pairs, _ in uses.dead_rows(facts) for _, term in pairs}
    return found, not_run(facts), [with_telling_terms(event, dead) for event in facts.events]


def with_telling_terms(event: Event, dead: set[int]) -> Event:
    """Return the event with the terms that tell something: those that have a graph, or are dead."""
    terms = [replace(t, dead=id(t) in dead) for t in getattr(event, "terms", ()) if t.value is None or id(t) in dead]
    return replace(event, terms=terms if len(terms) > 1 else []) if isinstance(event, Pass) else event


def not_run(facts: Facts) -> str:
    """Say which passes and calls of autograd.grad, of the files that ran some, and which steps were not reached."""
    ran: dict[str, set[int]] = defaultdict(set)
    for file, number in facts.record.lines:
        ran[file].add(number)
    lines = [f"{Path(file).name}:{number}" for file in ran for number in _lines_not_run(file, ran[file])]
    parts = [f"{joined(lines[:3])}{' and more' * (len(lines) > 3)}"] * bool(lines)
    idle = [set(held) - facts.fed for key, held in facts.accounts_of.items() if key not in facts.steps]
    idle = facts.networks_of(set().union(*idle))
    parts += [f"a step on {joined(idle)}"] * bool(idle and facts.steps)
    return f"Not reached: {joined(parts)}. `--iterations` watches longer." * bool(parts)


def _lines_not_run(file: str, ran: set[int]) -> Iterator[int]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a cell with magics
        return
    nodes = [*ast.walk(tree)]
    # A `backward` of the script's own, which is no static method as that of a Function: what calls it need not run one.
    own = any(n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == "backward" and not n.decorator_list)
    for call in nodes:
        if isinstance(call, ast.Call) and not ran & {*range(call.lineno, call.end_lineno + 1)}:
            name = ast.unparse(call.func)
            if (name.endswith(".backward") and not own) or name in CALLS:
                yield call.lineno
