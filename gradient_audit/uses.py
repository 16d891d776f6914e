"""Steps on gradients that are too old, used twice, missing, NaN or clipped in vain; optimizers that are idle or new."""

from collections import Counter
from collections.abc import Iterator

from torch import Tensor

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding
from gradient_audit.graph import parameters_of
from gradient_audit.record import HAND, Pass

IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one
BARE = "See whether it is still frozen, `inputs=` leaves it out, or `zero_grad()` comes before the step."
FAULTS = {
    "stale": "an optimizer of {} stepped again on gradients that it had already used.",
    "twice": "two optimizers stepped on the same gradients of {}.",
    "reused": "a gradient of {} was used by hand, and a step added it to another one.",
}


def wrong_steps(facts: Facts) -> Iterator[Finding]:
    """Yield the steps on gradients that are too old, another optimizer's, counted twice, or that never come."""
    for key, steps in facts.steps.items():
        for (kind, *places), numbers in steps.faults.items():
            cure = ""
            if kind == "stale" and places[1] in steps.repeated:  # it is the step that is too many
                places.reverse()
                cure = "Remove this step, or call `zero_grad()` and `backward()` before it."
            yield finding(kind, facts.networks_of(numbers), FAULTS[kind], places, cure)
        times = Counter(facts.accounts_of.get(key, ()))
        if numbers := {number for number in times if times[number] > 1}:
            text = f"an optimizer holds {facts.count_of(numbers)} of {{}} twice; each step moves them twice."
            cure = "See whether another network was meant; if not, `list(dict.fromkeys(parameters))` has each once."
            yield finding("twice", facts.networks_of(numbers), text, [[*steps.places][-1]], cure)
        if steps.bare > 1 and facts.fed & {*times}:  # else it is told of the network
            text = f"the last {steps.bare} steps of an optimizer of {{}} found no gradient."
            yield finding("unreached", facts.networks_of(times), text, steps.places, BARE, doubtful=bool(steps.fed))
        optimizer = facts.optimizers.get(key)
        for tensor in parameters_of(optimizer) if type(optimizer).__module__.startswith("torch.optim.") else ():
            if type(tensor) is Tensor and not tensor.requires_grad:  # the user's own optimizer may write to it
                text = f"a tensor of shape {list(tensor.shape)} had no gradient whenever its optimizer stepped."
                yield finding("unreached", (), text, steps.places)
    for p in (p for p in facts.passes if p.added):
        text = "this pass added to the gradient of a plain tensor that had been used by hand."
        yield finding("stale", (), text, [p.place], "Clear it after its use: `x.grad = None`.", doubtful=True)
    sloped = set().union(*(call.reached for call in facts.record.calls if call.kind == "grad"))  # maybe with slope 0
    raised = any(p.raised for p in facts.passes)
    for network, ids in facts.numbers.items():
        missing = {n for n in ids if facts.balances[n].stepped and n not in facts.fed}
        of_it = [s for key, s in facts.steps.items() if missing & {*facts.accounts_of.get(key, ())}]
        if missing and (not raised or any(s.places.total() > 1 for s in of_it)):
            count = facts.count_of(missing, network)
            text = f"{count} of {network} had no gradient whenever their optimizer stepped"
            places = [place for s in of_it for place in s.places]
            if inside := [e.place for e in facts.record.forwards if e.checkpointed and e.values & missing]:
                cure = "Give the checkpoint `use_reentrant=False`: the other kind needs an input that needs a gradient."
                yield finding("unreached", (network,), f"{text}.", [*inside, *places], cure)
                continue
            cut_off = [p for p in facts.passes if missing & p.values - p.reached - sloped]
            places += [place for p in cut_off[-1:] for mistake, place in p.cuts if mistake == "detached-fakes"]
            cut = bool(cut_off)
            dropped = (event for event in facts.record.forwards if event.scalar and not (event.in_loss or event.needed))
            cut |= any(missing & event.values for event in dropped)
            if cut or missing == {n for n in ids if facts.balances[n].stepped}:
                yield finding("unreached", (network,), f"{text}.", places)
                continue
            cleared = any(missing & p.reached for p in facts.passes)
            why = "it was cleared between `backward()` and `step()`" if cleared else "no loss leads to them"
            cure = "If they are held still, or not in use, on purpose, this is right."
            yield finding("unreached", (network,), f"{text}: {why}.", places, cure, doubtful=True)


def idle(facts: Facts) -> dict[int, tuple[set[int], list[Pass], list[Pass]]]:
    """Return the optimizers that never stepped, with their parameters, the passes that reached and that left them."""
    found, most = {}, _most_steps(facts)
    by_hand = facts.steps[HAND].fed if HAND in facts.steps else set()
    for key in facts.optimizers.keys() - facts.steps.keys():
        numbers = {*facts.accounts_of[key]} - facts.stepped - by_hand
        passes = [p for p in facts.passes if p.reached & numbers and not p.raised]
        dropped = [
            p
            for p in passes
            if p.reached <= numbers
            and all(p.number not in facts.balances[k].passes for k in p.reached & facts.balances.keys())
        ]
        if facts.networks_of(numbers) and passes and (most >= IDLE_AFTER or (most > 1 and dropped)):
            found[key] = numbers, passes, dropped
    return found


def idle_parameters(facts: Facts) -> set[int]:
    """Return the parameters of idle optimizers: what is dead or wasted because of that is told there."""
    return set().union(*(numbers for numbers, *_ in idle(facts).values()))


def _most_steps(facts: Facts) -> int:
    return max((steps.places.total() for steps in facts.steps.values()), default=0)


def idle_optimizers(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that never stepped though their parameters got gradients."""
    for key, (numbers, passes, dropped) in idle(facts).items():
        later = not facts.ended and len(dropped) < IDLE_AFTER  # it may be that of a second stage
        text = f"the optimizer of {{}} ({type(facts.optimizers[key]).__name__}) never stepped; another did "
        text += f"{_most_steps(facts)}x."
        yield finding("idle", facts.networks_of(numbers), text, [p.place for p in dropped or passes], doubtful=later)


def renewed_optimizers(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that are made anew while they train, whose state is lost."""
    for number, times in facts.record.renewed.items():
        optimizer = facts.optimizers[number]
        if times > 1 and any(optimizer.state.values()):
            text = f"the optimizer of {{}} ({type(optimizer).__name__}) was made anew {times}x; its state was lost."
            yield finding("renewed", facts.networks_of(facts.accounts_of[number]), text, [facts.record.made[optimizer]])


def edited_gradients(facts: Facts) -> Iterator[Finding]:
    """Yield the lines that clip in vain, and where the first NaN came from if a step used it."""
    for place, clip in facts.record.ledger.clips.items():
        if clip == "scaled":
            yield finding("scaled", (), "gradients were clipped while they were multiplied by the loss scale.", [place])
        elif clip == "edited":
            text = "gradients were changed here after the step that used them, and no later step used them."
            yield finding("clipped", (), text, [place], "Change them between `backward()` and `step()`.", doubtful=True)
        elif not clip and facts.steps:
            yield finding("clipped", (), "no step used the gradients that were clipped here.", [place])
    for place in dict.fromkeys(facts.record.unscaled):
        text = "gradients were divided by the scale of GradScaler, and their loss was not multiplied by it."
        yield finding("scaled", (), text, [place], "`scaler.scale(loss).backward()`.")
    steps = [event for event in facts.events if event.kind == "step" and event.nan]
    lost = [p for p in facts.passes if p.nan]
    if steps or lost:
        numbers = set().union(*(event.nan for event in steps))
        text = "a step used gradients of {} that are NaN." if steps else "the loss of a backward pass is NaN."
        places = [*filter(None, [facts.record.nan]), (steps or lost)[0].place]
        yield finding("nan", facts.networks_of(numbers), text, places, doubtful=not steps)
