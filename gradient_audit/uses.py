"""Steps on gradients that are too old, used twice or missing; optimizers that never step or are made anew."""

from collections import Counter
from collections.abc import Iterator

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding

IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one
FAULTS = {
    "stale": "an optimizer of {} stepped again on gradients that it had already used.",
    "twice": "two optimizers stepped on the same gradients of {}.",
    "reused": "a gradient of {} was used by hand, and a step added it to another one.",
}


def wrong_steps(facts: Facts) -> Iterator[Finding]:
    """Yield the steps on gradients that are too old, another optimizer's, counted twice, or that never come."""
    for key, steps in facts.steps.items():
        for (kind, *places), numbers in steps.faults.items():
            if kind == "stale" and places[1] in steps.repeated:  # it is the step that is too many
                places.reverse()
            yield finding(kind, facts.networks_of(numbers), FAULTS[kind], places)
        times = Counter(facts.accounts_of.get(key, ()))
        if numbers := {number for number in times if times[number] > 1}:
            text = f"an optimizer holds {facts.count_of(numbers)} of {{}} twice; each step moves them twice."
            cure = "Give it each once: `list(dict.fromkeys(parameters))`; was another network meant the second time?"
            yield finding("twice", facts.networks_of(numbers), text, [[*steps.places][-1]], cure)
        for shape in (shape for number, shape, _, never in facts.record.bare.values() if never and number == key):
            text = f"a tensor of shape {shape} had no gradient whenever its optimizer stepped."
            yield finding("unreached", (), text, steps.places)
    for network, ids in facts.numbers.items():
        missing = {n for n in ids if facts.by_number[n].stepped and n not in facts.fed}
        if missing:
            of_it = [s for key, s in facts.steps.items() if missing & {*facts.accounts_of.get(key, ())}]
            count = facts.count_of(missing, network)
            text = f"{count} of {network} had no gradient whenever their optimizer stepped"
            places = [place for s in of_it for place in s.places]
            cut = any(missing & p.values - p.reached for p in facts.record.passes)
            if cut or missing == {n for n in ids if facts.by_number[n].stepped}:
                yield finding("unreached", (network,), f"{text}.", places)
                continue
            cleared = any(missing & p.reached for p in facts.record.passes)
            why = "it was cleared between `backward()` and `step()`" if cleared else "no loss was computed from them"
            cure = "If they are held still, or not in use, on purpose, this is right."
            yield finding("unreached", (network,), f"{text}: {why}.", places, cure, doubtful=True)


def idle_optimizers(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that never stepped though their parameters got gradients."""
    most = max((sum(steps.places.values()) for steps in facts.steps.values()), default=0)
    stepped = {number for number, account in facts.by_number.items() if account.stepped}
    for key, optimizer in facts.optimizers.items():
        if key in facts.steps:
            continue
        numbers = {*facts.accounts_of[key]} - stepped
        passes = [p for p in facts.record.passes if p.reached & numbers and not p.raised]
        dropped = [
            p
            for p in passes
            if p.reached <= numbers
            and all(p.number not in facts.by_number[k].passes for k in p.reached & facts.by_number.keys())
        ]
        if (names := facts.networks_of(numbers)) and passes and (most >= IDLE_AFTER or (most > 1 and dropped)):
            facts.excused |= numbers
            later = not facts.ended and len(dropped) < IDLE_AFTER  # it may be that of a second stage
            text = f"the optimizer of {{}} ({type(optimizer).__name__}) never stepped; another did {most}x."
            yield finding("idle", names, text, [p.place for p in dropped or passes], doubtful=later)


def renewed_optimizers(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that are made anew while they train, whose state is lost."""
    for number, times in facts.record.renewed.items():
        optimizer = facts.optimizers[number]
        if times > 1 and any(optimizer.state.values()):
            text = f"the optimizer of {{}} ({type(optimizer).__name__}) was made anew {times}x; its state was lost."
            yield finding("renewed", facts.networks_of(facts.accounts_of[number]), text, [facts.record.made[optimizer]])
