"""Gradients that no step used."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import LIMIT, Sentence, joined
from gradient_audit.history import Call
from gradient_audit.holders import unused_gradients
from gradient_audit.places import Place

RANK = 200
SEVERITY = "waste"
MEANING = """Gradients were computed, and no step used them. As a question: `zero_grad()` cleared all that a pass gave
before a step came."""
CURE = f"{LIMIT}, or `detach()`, unless it is read; for a step, `zero_grad()` only after it."
EXHIBITS = ("bugs/accumulation_cleared.py", "bugs/biggan_steps_of_d.py", "clean/accumulation.py")
ASSIGNED = "Others took their place in `.grad` before a step: to step on the sum, add them, `p.grad += gradient`."
CUT = "If the loss is for that, leave out `detach()`, `.data` or `no_grad()` there; if for nothing, delete it."
ACCUMULATE = """To accumulate gradients over batches, call `zero_grad()` only after a step; if they are not wanted, as
of a batch that is skipped, or of a pass for hooks, this is right."""


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the passes whose gradients were not used, by line; of those that no optimizer holds, others tell."""
    for unused in facts.once(unused_gradients):
        network, explained = unused.network, unused.lost | unused.swapped.keys() | unused.ownerless
        for place, pairs in unused.wasted.items():
            if numbers := set().union(*(numbers for _, numbers in pairs)) - explained:
                count = facts.count_of(numbers, network)
                text = f"{count} of {{}} got gradients that no optimizer used, {len(pairs)}x."
                if line := _clearing_line(facts, [p for p, _ in pairs], numbers):
                    text += " This line clears them before a step."
                    yield Sentence(text, (network,), [line, place], ACCUMULATE, question=True)
                elif cut := _cutting_line(facts, place):
                    text += f" Their loss was computed from {cut[1]}, too, which this line cuts off."
                    yield Sentence(text, (network,), [cut[0], place], CUT, question=True)
                else:
                    yield Sentence(text, (network,), [place], _cure(facts, network, pairs))


def _cutting_line(facts: Facts, place: Place) -> tuple[Place, str] | None:
    """Return the nearest line that cuts off what is trained, and that, if no gradient of these passes was used."""
    passes = [p for p in facts.passes if p.place == place]
    trained = facts.owned - set().union(*(p.reached for p in passes))
    is_cleared = any(p.number not in facts.balances[number].passes for p in passes for number in p.reached)
    if not is_cleared or any(p.users or p.read or p.began.named for p in passes):
        return None
    cuts = ((at, joined(facts.networks_of(sources & trained))) for _, at, sources in passes[0].began.cuts[::-1])
    return next((cut for cut in cuts if cut[1]), None)


def _clearing_line(facts: Facts, passes: list[Call], numbers: set[int]) -> Place | None:
    """Return the line that clears all that these passes of a line gave, where its others add up, or are few."""
    place, unused, following = passes[0].place, {*passes}, None
    others = [p for p in facts.passes if p.place == place and p.used & numbers]
    sums = [{p.number for p in others} & summed for steps in facts.steps.values() for summed in steps.sums]
    often = len(passes) >= max(2, len(others)) and bool(numbers & facts.moved_parameters)
    often |= any(len(summed) > 1 for summed in sums)
    lines = {None} if not often or place in facts.read_lines or any(p.users for p in passes) else set()
    for row in reversed(facts.events):
        if row.kind == "backward" and not row.began.detailed:
            following = row
        elif row in unused and not (following and following.kind == "backward"):  # else no zero_grad() was seen
            clears = following and following.kind == "zero_grad" and following.parameters & numbers
            lines.add(following.place if clears else None)
        elif row.kind in ("zero_grad", "step"):
            following = row
    return lines.pop() if len(lines) == 1 else None


def _cure(facts: Facts, network: str, wasted: list[tuple[Call, set[int]]]) -> str:
    """Return the cure for gradients of a network that no optimizer used. wasted: passes, each with parameters."""
    if not facts.steps:
        return "No optimizer stepped during the audit: audit whole steps."
    cure = ASSIGNED if all(p.kind == "grad" for p, _ in wasted) else CURE
    if any(facts.leads_on(p, network) for p, _ in wasted):
        cure = f"{LIMIT}."  # `detach()` there would cut off those whom the loss is for
        cure += " If the script reads them, this is right." if any(p.read for p, _ in wasted) else ""
    networks = [name for p, _ in wasted for name in facts.networks_of(p.used)]
    if networks and all(facts.networks[name].kind == "parameter" for name in networks):
        names = dict.fromkeys(name.rstrip("'") for name in networks)  # made anew in each step
        cure = cure.replace("list(network.parameters())", f"[{', '.join(names)}]")
    if all(p.number in facts.balances[number].passes for p, unused in wasted for number in unused):
        cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
    return cure
