"""A loss that moved networks of different optimizers."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from gradient_audit.facts import Facts
from gradient_audit.findings import LIMIT, Sentence
from gradient_audit.places import Place
from gradient_audit.players import Group, crossed_groups, mixed_lines
from gradient_audit.trace import LineNotRun

KIND = "meant?"
RANK = 130
SEVERITY = "question"
MEANING = "One `backward()` moved networks of different optimizers."
CURE = f"If this loss is for all of them, as an autoencoder's is, this is right. If not: {LIMIT}."
MISTAKES = ("d-steps-on-g-loss",)
EXHIBITS = ("clean/head_alone_then_with_encoder.py", "clean/optimizer_for_each_kind_of_layer.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the networks that one pass moved, but those of which `mixed` tells, and parts of one model."""
    explained, crossed = facts.once(mixed_lines), facts.once(crossed_groups)
    places: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for p in facts.passes:
        for group in crossed[p.number] if p.place not in explained else ():
            # A table beside its model, as a rule.
            has_table = any(facts.networks[name].kind == "parameter" for name in group)
            if not (has_table or _is_one_model(facts, group)):
                places[tuple(group)].append(p.place)
    text = "one `backward()` wrote gradients into {}, which have different optimizers, and both stepped on them."
    for networks, lines in () if _is_only_loss(facts) else places.items():
        yield Sentence(text, networks, lines)


def _is_only_loss(facts: Facts) -> bool:
    """Whether a script, and no block of one, has one loss in all: it is for whom it moves."""
    losses = {(p.place, p.callers) for p in facts.passes if p.split}
    return len(losses) < 2 and (facts.whole or not facts.ended) and not facts.of(LineNotRun)


def _is_one_model(facts: Facts, group: Group) -> bool:
    """Whether these are parts of one module, with optimizers that always step together."""
    rows = (row for row in facts.events if row.kind in ("step", "backward"))
    runs = [[*run] for kind, run in groupby(rows, lambda row: row.kind) if kind == "step"]
    together = {frozenset(row.optimizer for row in run) & set().union(*group.values()) for run in runs}
    wholes = {facts.networks[name].whole for name in group}
    return len(wholes) == 1 and len(together - {frozenset()}) == 1
