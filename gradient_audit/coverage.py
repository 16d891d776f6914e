"""What the watched steps did not run: an answer is about what ran."""

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gradient_audit.facts import Facts
from gradient_audit.findings import joined

CALLS = ("grad", "autograd.grad", "torch.autograd.grad")
SHOWN = 3


def not_run(facts: Facts) -> str:
    """Say which passes and calls of autograd.grad, of the files that ran some, and which steps were not reached."""
    ran: dict[str, set[int]] = defaultdict(set)
    for event in facts.record.events:
        if event.kind in ("backward", "grad"):
            ran[event.place.file].add(event.place.number)
    lines = [f"{Path(file).name}:{number}" for file in ran for number in _lines_not_run(file, ran[file])]
    parts = [f"{joined(lines[:SHOWN])}{' and more' * (len(lines) > SHOWN)}"] * bool(lines)
    idle = facts.networks_of(set().union(*(held for key, held in facts.accounts_of.items() if key not in facts.steps)))
    parts += [f"a step on {joined(idle)}"] * bool(idle and facts.steps)
    return f"Not reached: {joined(parts)}. `--iterations` watches longer." * bool(parts)


def _lines_not_run(file: str, ran: set[int]) -> Iterator[int]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a cell with magics
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and not ran & {*range(call.lineno, call.end_lineno + 1)}:
            name = ast.unparse(call.func)
            if name.endswith(".backward") or name in CALLS:
                yield call.lineno
