"""What was used too late, twice or by nothing: gradients, optimizers, terms of losses, graphs."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from torch import Tensor

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding, finding, joined
from gradient_audit.graph import parameters_of
from gradient_audit.lineage import BLIND, CALL, NUMBER, PARAMETER, bit, numbers_in
from gradient_audit.places import Place, expression_place
from gradient_audit.record import HAND, OTHER, Built, Pass, Term

IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one
LATER = 2  # steps of each optimizer, after which a graph is kept; the loop's own variables hold one for one step
FAULTS = {
    "stale": "an optimizer of {} stepped again on gradients that it had already used.",
    "twice": "two optimizers stepped on the same gradients of {}.",
    "reused": "a gradient of {} was used by hand, and a step added it to another one.",
}
BARE = "See whether it is still frozen, `inputs=` leaves it out, or `zero_grad()` comes before the step."
CONSTANT = "If it is a target, a baseline or a number to print, this is right; if not, see whether `detach()`, "
CONSTANT += "`no_grad()` or `.item()` cuts it off."
ZERO = "If a ReLU or a mask holds it back, or it is constant, this is right; if not, see whether a value is taken from "
ZERO += "itself: a straight-through estimator is `x - q.detach()`."
FLAT = "If a ReLU or a mask holds them back, this is right; if not, see what in the forward pass has no slope, as "
FLAT += "`round()` and `sign()` have none: a straight-through estimator is `x + (x.round() - x).detach()`."


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


def missing_gradients(facts: Facts) -> Iterator[Finding]:
    """Yield the networks of which an optimizer stepped on parameters that never had a gradient."""
    sloped = set().union(*(call.reached for call in facts.record.calls if call.kind == "grad"))  # maybe with slope 0
    forwards, raised = facts.record.forwards, any(p.raised for p in facts.passes)
    for network, ids in facts.numbers.items():
        missing = (ids.keys() & facts.stepped) - facts.fed
        of_it = [s for key, s in facts.steps.items() if missing & {*facts.accounts_of.get(key, ())}]
        if not missing or (raised and all(s.places.total() == 1 for s in of_it)):
            continue
        text = f"{facts.count_of(missing, network)} of {network} had no gradient whenever their optimizer stepped"
        inside = [event.place for event in forwards if event.checkpointed and event.values & missing]
        cut_off = [p for p in facts.passes if missing & p.values - p.reached - sloped]
        places = [*inside, *(place for s in of_it for place in s.places)]
        places += [place for p in cut_off[-1:] for mistake, place in p.cuts if mistake == "detached-fakes"]
        cut = any(missing & e.values for e in forwards if e.scalar and not (e.in_loss or e.needed)) or bool(cut_off)
        copied = not inside and missing <= facts.record.copied
        cure, doubtful = "", copied or not (inside or cut or missing == ids.keys() & facts.stepped)
        if inside:
            cure = "Give the checkpoint `use_reentrant=False`: the other kind needs an input that needs a gradient."
        elif copied:
            text += ": the script writes others to them, as an average or a target"
            cure = "Then leave them out of the optimizer, which does not move them: this is right."
        elif doubtful:
            cleared = any(missing & p.reached for p in facts.passes)
            text += ": it was cleared between `backward()` and `step()`" if cleared else ": no loss leads to them"
            cure = "If they are held still, or not in use, on purpose, this is right."
        yield finding("unreached", (network,), f"{text}.", places, cure, doubtful=doubtful)


def still_layers(facts: Facts) -> Iterator[Finding]:
    """Yield the first layers of a network whose gradient was exactly zero at every step, unless a weight was zero."""
    steps = [event for event in facts.events if event.kind == "step" and event.still is not None]
    steps = [(step.place, set().union(*step.taken.values()), step.still) for step in steps]  # where, used, of it zero
    excused = set().union(*(term.reached for p in facts.passes for term in p.terms if term.weightless))
    excused |= set().union(*(moved for *_, moved in zero_terms(facts)))  # told of the term
    for network, ids in facts.numbers.items():
        of_it = [(place, used, zero) for place, used, zero in steps if used & ids.keys()]
        stepped = [number for number in ids if any(number in used for _, used, _ in of_it)]
        still = {number for number in stepped if all(number in zero for _, used, zero in of_it if number in used)}
        if len(of_it) > 1 and still and still == {*stepped[: len(still)]} and not still & excused:
            text = f"{facts.count_of(still, network)} of {{}} had a gradient of exactly zero at every step."
            yield finding("unreached", (network,), text, [place for place, *_ in of_it], FLAT, doubtful=True)


def idle(facts: Facts) -> Iterator[tuple[int, set[int], list[Pass], list[Pass]]]:
    """Yield the optimizers that never stepped, with their parameters, the passes that reached and that left them."""
    by_hand = facts.steps[HAND].fed if HAND in facts.steps else set()
    for key in facts.optimizers.keys() - facts.steps.keys():
        numbers = {*facts.accounts_of[key]} - facts.stepped - by_hand
        passes = [p for p in facts.passes if p.reached & numbers and not p.raised]
        left = (p for p in passes if p.reached <= numbers)
        dropped = [p for p in left if not any(p.number in facts.balances[n].passes for n in p.reached)]
        if facts.networks_of(numbers) and passes and facts.most_steps >= (2 if dropped else IDLE_AFTER):
            yield key, numbers, passes, dropped


def idle_parameters(facts: Facts) -> set[int]:
    """Return the parameters of idle optimizers: what is dead or wasted because of that is told there."""
    return set().union(*(numbers for _, numbers, *_ in idle(facts)))


def idle_optimizers(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that never stepped though their parameters got gradients, and those made anew."""
    for key, numbers, passes, dropped in idle(facts):
        later = not facts.ended and len(dropped) < IDLE_AFTER  # it may be that of a second stage
        text = f"the optimizer of {{}} ({type(facts.optimizers[key]).__name__}) never stepped; another did "
        text += f"{facts.most_steps}x."
        yield finding("idle", facts.networks_of(numbers), text, [p.place for p in dropped or passes], doubtful=later)
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
        elif clip == "empty":
            text = "no parameter was given to clip here."
            cure = "A generator, as `network.parameters()`, gives its parameters once: make a list of it."
            yield finding("clipped", (), text, [place], cure, doubtful=True)
        elif not clip and facts.steps:
            yield finding("clipped", (), "no step used the gradients that were clipped here.", [place])
    for place, divided in facts.record.scaling.items():
        text = "a step used gradients that were multiplied by the scale of GradScaler, and not divided by it."
        cure = "`scaler.step(optimizer)`, then `scaler.update()`."
        if divided:
            text = "gradients were divided by the scale of GradScaler, and their loss was not multiplied by it."
            cure = "`scaler.scale(loss).backward()`."
        yield finding("scaled", (), text, [place], cure)
    steps = [event for event in facts.events if event.kind == "step" and event.nan]
    lost = [p for p in facts.passes if p.nan]
    if steps or lost:
        text = "a step used gradients of {} that are NaN." if steps else "the loss of a backward pass is NaN."
        places = [*filter(None, [facts.record.nan]), (steps or lost)[0].place]
        networks = facts.networks_of(set().union(*(event.nan for event in steps)))
        yield finding("nan", networks, text, places, doubtful=not steps)


def dead_passes(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that reached nothing that is trained."""
    for p in facts.passes if facts.optimizers or facts.networks else ():  # else nothing was to be trained
        loose = {id(ref()) for ref in p.loose}
        # A gradient of a plain tensor may be read, as FGSM reads that of images.
        serves = p.reached or loose & facts.held or (p.loose and p.place in facts.read)
        if p.detailed and not (p.raised or serves):
            cut = [place for mistake, place in p.cuts if mistake == "loss-rebuilt" and p.loose][-1:]
            cure = "Join losses with `torch.stack()`, without `.item()` and `requires_grad=True`." if cut else ""
            text, mistake = "a backward pass reached no parameter of any network.", "loss-made-leaf" if cut else ""
            yield finding("dead", (), text, [*cut, p.place], cure, mistake=mistake)


def dead_rows(facts: Facts) -> Iterator[tuple[list[tuple[Pass, Term]], bool]]:
    """Yield the terms that were dead in all passes of their line, each with its passes, and whether that is proved."""
    used = set().union(*(p.used for p in facts.passes))
    moved = sum(bit(kind, number) for number in used for kind in (PARAMETER, NUMBER))
    held_still = idle_parameters(facts)
    for pairs in facts.rows.values():
        constants = {term.value for _, term in pairs}
        if None not in constants:  # one that changes, and comes from what is trained, was cut off
            changes = len(constants) > 1
            calls = [facts.record.calls[number] for _, term in pairs for number in numbers_in(CALL, term.sources)]
            # A loss is proved to be cut off by a penalty without `create_graph`, or by no_grad().
            proved = any(call.kind == "grad" and not call.create_graph for call in calls)
            proved |= changes and any(p.used & {*numbers_in(BLIND, term.sources)} for p, term in pairs)
            if (proved or changes) and any(term.sources & moved for _, term in pairs):
                yield pairs, proved
        elif constants == {None} and _moves_nothing(facts, pairs, held_still):
            yield pairs, True


def _moves_nothing(facts: Facts, pairs: list[tuple[Pass, Term]], held_still: set[int]) -> bool:
    """Whether a term with a graph reaches nothing that a step used, in passes of which one was used."""
    alive = held_still | {OTHER}.union(*(term.reached for _, term in pairs)) - facts.inside
    goes_on = any(term.node in q.nodes for p, term in pairs for q in facts.passes if q is not p)
    # In another pass of the same sum, for another network's step, it may move that one.
    last, term = pairs[-1]
    turns = [q for q in facts.passes if term.reached & q.used and not last.used & q.used]
    goes_on |= any([(t.name, t.reached) for t in q.terms] == [(t.name, t.reached) for t in last.terms] for q in turns)
    return any(p.users for p, _ in pairs) and not (goes_on or any(t.reached & (alive | p.used) for p, t in pairs))


def left_out_networks(facts: Facts) -> set[str]:
    """Return the networks that no optimizer holds, and to which alone a dead term leads: that is told of them."""
    led_to = {name for pairs, _ in dead_rows(facts) for name in facts.networks_of(pairs[0][1].reached)}
    held = facts.owned | facts.fed
    return {name for name in led_to if facts.optimizers and not facts.numbers[name].keys() & held}


def zero_terms(facts: Facts) -> Iterator[tuple[Pass, Term, set[int]]]:
    """Yield the terms whose gradient was exactly zero each time that it was measured, with what they should move."""
    for pairs in facts.rows.values():
        moving = [(p, term, p.used & term.reached) for p, term in pairs if term.measured and not term.at_zero]
        moving = [(p, term, moved) for p, term, moved in moving if moved]
        zero = (t.measured.get(n, (1, 1))[0] == 0 and not t.weightless for _, t, moved in moving for n in moved)
        if len(moving) > 1 and all(zero):
            yield moving[0]


def dead_terms(facts: Facts) -> Iterator[Finding]:
    """Yield the terms that move nothing, or with a gradient of exactly zero; not those of networks left out."""
    left_out, told = left_out_networks(facts), []
    for pairs, proved in dead_rows(facts):
        p, term = pairs[0]
        if not {*facts.networks_of(term.reached)} & left_out:
            networks = tuple(name for name in facts.numbers if p.cells[name] == "used")
            told.append((p, term, networks, "contributes no gradient to any parameter that is updated.", proved))
    text = "gives {} a gradient of exactly zero, each time that it was measured."
    told += [(p, term, facts.networks_of(moved), text, False) for p, term, moved in zero_terms(facts)]
    for p, term, networks, text, proved in told:
        name = "a term of the sum" if term.value is not None else f"`{term.name}`"
        name += f" from {term.place.where}" if term.place else ""
        cure = "" if proved else ZERO if term.measured else CONSTANT
        places = [p.place, *[term.place] * bool(term.place)]
        yield finding("dead", networks, f"{name} {text}", places, cure, doubtful=not proved)


def unused_graphs(facts: Facts) -> Iterator[Finding]:
    """Yield the lines whose graphs were built and dropped; of a function that is needed elsewhere, its caller."""
    events = [event for event in facts.events if isinstance(event, Built)]
    built = [(tuple(name for name, cell in e.cells.items() if cell in ("here", "read")), e) for e in events]
    built = [(names, event) for names, event in built if names]
    needed = {(names, caller) for names, event in built if event.needed for caller in event.callers}
    lines: dict[tuple[Place, str], list[tuple[tuple[str, ...], Built]]] = defaultdict(list)
    for names, event in built:
        useless = [caller for caller in event.callers if (names, caller) not in needed]
        tried = any(code.co_name == "__init__" for code, *_ in event.callers)  # to see the shapes
        in_part = any(part.needed for part in getattr(event, "parts", ()))  # that of features which a hook has taken
        if event.gone and useless and not (tried or in_part):
            place = event.place if useless[0] == event.callers[0] else expression_place(*useless[0])
            lines[place, event.kind].append((names, event))
    for (place, kind), pairs in lines.items():
        times = Counter(name for names, _ in pairs for name in names)
        what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
        names = [name for name in facts.numbers if name in times]
        text = f"{what} {joined(names)} built a graph that no backward pass came through, {max(times.values())}x."
        # Where the value went on into a loss, as fakes for D do, a number on the way is no loss.
        fed = any(facts.is_fed_by(p, name) for p in facts.passes for name in names)
        lost = kind == "grad" or (not fed and any(event.scalar and not event.in_loss for _, event in pairs))
        yield finding("unused" if lost else "graph", names, text, [place])


def kept_graphs(facts: Facts) -> Iterator[Finding]:
    """Yield the lines whose graphs live on after two more steps of each optimizer, or one where the audit ends then."""
    steps: Counter[int] = Counter(dict.fromkeys(facts.steps, 0))  # after an event, by optimizer
    lines: dict[tuple[Place, str], list[tuple[int, Built]]] = defaultdict(list)  # the newest event first
    for event in reversed(facts.events):
        if event.kind == "step":
            steps[event.optimizer] += 1
        elif event.kind in ("forward", "backward"):
            lines[event.place, event.kind].append((min(steps.values(), default=0), event))
    for (place, kind), events in lines.items():
        newest, oldest = events[0][0], events[-1][0]
        least = newest + (1 if oldest < min(steps.values(), default=0) else LATER)
        old = [event for age, event in events if age >= least and event.graph and not event.gone]
        if kind == "forward":  # that of a loss is told with its loss
            old = [event for event in old if event.in_loss is None or event.in_loss.gone]
        if old:
            networks = [name for name, cell in old[0].cells.items() if cell != "-"]
            text = f"a graph that this line built is still alive after later steps, {len(old)}x."
            passes = [event if isinstance(event, Pass) else event.in_loss for event in old]
            keepers = [expression_place(*p.keeper) for p in passes if p and p.keeper][-1:]
            if keepers:
                text = f"a graph of {place.where} goes on through this line, and is still alive after later steps."
            yield finding("kept", networks, text, [*keepers, place])
