"""Parameters that never had a gradient when their optimizer stepped."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.graphs import losses_without_pass, passes_cut_off
from gradient_audit.holders import mistaken_optimizers, unused_gradients
from gradient_audit.places import Place
from gradient_audit.steps import Steps
from gradient_audit.terms import IDLE_AFTER, rebuilt_losses, zero_terms

RANK = 90
SEVERITY = "error"
MEANING = """Parameters had no gradient whenever their optimizer stepped. As a question: they had none in its last
steps, as when a network stays frozen; the first layers, or what a loss gets by way of `round()` or the like alone, had
one of exactly zero at every step; or the script writes others to them, as to an average or a target that the optimizer
holds."""
CURE = """See whether `detach()` or `no_grad()` cuts them off, whether `zero_grad()` comes between `backward()` and
`step()`, and whether the forward pass uses them at all."""
MISTAKES = ("detached-fakes", "optimizer-old-weights")
EXHIBITS = ("bugs/dragan_loss_unused.py", "bugs/encoder_under_no_grad.py", "clean/branch_not_taken.py")
CUT = """This line cuts them off. In the loss that is for them, leave out `detach()` or `no_grad()`; where another loss
needs it, `detach()` there alone."""
COPIED = """What they give is copied to other parameters, as by `.data` or `nn.Parameter(x)`, which cuts them off:
`torch.func.functional_call()` takes tensors in place of parameters, with their graph."""
CLEARED = "Call it before `backward()`, or after `step()`; see whether two optimizers are exchanged."
UNUSED = "This looks like a loss for them, and got no `backward()`: call that, or add it to the loss that gets one."
BARE = """See whether it is still frozen, `inputs=` leaves it out, `zero_grad()` comes before the step, or the optimizer
was given another network than was meant."""
AT_ZERO = "If a ReLU or a mask holds them back, this is right; if not, see what in the forward pass has no slope."
FLAT = """The loss gets them by way of `round()`, `sign()` or the like alone, which have no slope: a straight-through
estimator is `x + (x.round() - x).detach()`."""
CHECKPOINT = "Give the checkpoint `use_reentrant=False`: the other kind needs an input that needs a gradient."


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the optimizers that found nothing, the networks of which parts had no gradient, and one of zero."""
    for key, steps in facts.steps.items():
        held = {*facts.held_by(key)}
        told = key in facts.once(mistaken_optimizers)  # by `ownerless`
        is_frozen = bool(held) and not held & facts.stepped
        # Of what was not frozen, and never moved, the network gets the sentence.
        if steps.bare > 1 and (held & facts.moved_parameters or is_frozen) and not told:
            names = facts.networks_of(held)  # none of parameters that others have replaced
            text = f"the last {steps.bare} steps of an optimizer{' of {}' if names else ''} found no gradient."
            question = bool(steps.moved_parameters or is_frozen)
            yield Sentence(text, names, steps.places, BARE, question)
        for network, ids in facts.parameters.items() if not steps.bare else ():
            still = min((steps.places.total() - steps.last[n] for n in ids.keys() & steps.last.keys()), default=0)
            if still >= IDLE_AFTER:
                text = f"the last {still} steps of the optimizer found gradients of others, and none of {{}}."
                yield Sentence(text, (network,), steps.places, BARE, question=True)
        for shape in facts.optimizers[key].constants if key in facts.optimizers else ():
            text = f"a tensor of shape {[*shape]} had no gradient whenever its optimizer stepped."
            yield Sentence(text, (), steps.places)
    raised = any(p.raised for p in facts.passes)
    for network, missing in facts.without_gradient.items() if not facts.once(rebuilt_losses) else ():
        of_it = [steps for key, steps in facts.steps.items() if missing & {*facts.held_by(key)}]
        if not (raised and all(steps.places.total() == 1 for steps in of_it)):
            yield from _without_gradient(facts, network, missing, of_it)
    yield from _layers_at_zero(facts)


def _without_gradient(facts: Facts, network: str, missing: set[int], of_it: list[Steps]) -> Iterator[Sentence]:
    text = f"{facts.count_of(missing, network)} of {{}} had no gradient whenever their optimizer stepped"
    inside = [row.place for row in facts.forwards if row.event.checkpointed and row.event.sources & missing]
    cut_off, cuts = facts.once(passes_cut_off)[network]
    unused = losses_without_pass(facts, missing)
    stepping = [place for steps in of_it for place in steps.places]
    places = [*inside, *cuts, *unused, *stepping]
    clears = [] if cut_off else _clearing_lines(facts, missing, in_vain=bool(unused))
    if inside:
        yield Sentence(f"{text}.", (network,), places, CHECKPOINT)
    elif missing <= facts.end.written_from and any(
        unused.ownerless & facts.end.written and not unused.meant for unused in facts.once(unused_gradients)
    ):
        return  # `ownerless` tells what was written, and how
    elif missing <= facts.end.written:
        cure = "Then leave them out of the optimizer, which does not move them: this is right."
        text += ": the script writes others to them, as an average or a target."
        yield Sentence(text, (network,), stepping, cure, question=True)
    elif clears:
        held = missing != facts.parameters[network].keys() & facts.stepped  # maybe on purpose
        text += ": this line clears it between `backward()` and `step()`."
        yield Sentence(text, (network,), clears + places, CLEARED, question=held)
    elif cut_off or unused or missing == facts.parameters[network].keys() & facts.stepped:
        cure = CUT if cuts else UNUSED if unused else ""
        if not cure and missing <= facts.end.written_from and any(p.reached & facts.end.written for p in facts.passes):
            writes = [
                row.place for row in facts.history.rows if row.kind == "hand" and row.parameters & facts.end.written
            ]
            places, cure = writes[:1] + places, COPIED
        yield Sentence(f"{text}.", (network,), places, cure)
    elif not missing <= _behind_features(facts):
        cleared = any(missing & p.reached for p in facts.passes)
        text += ": it was cleared between `backward()` and `step()`." if cleared else ": no loss leads to them."
        cure = "If they are held still, or not in use, on purpose, this is right."
        yield Sentence(text, (network,), places, cure, question=True)


def _clearing_lines(facts: Facts, numbers: set[int], *, in_vain: bool) -> list[Place]:
    """Return the calls of `zero_grad()` between passes that gave these their gradients and the steps on them.

    in_vain: only of passes that no step used, as another loss may be meant for these.
    """
    lines: dict[Place, None] = {}
    is_filled, clears = False, None
    for row in facts.history.rows:
        if row.kind == "backward" and row.reached & numbers and not (in_vain and row.used):
            is_filled, clears = True, None
        elif row.kind == "zero_grad" and is_filled and row.parameters & numbers:
            is_filled, clears = False, row.place
        elif row.kind == "step" and clears and row.event and row.event.parameters & numbers:
            lines[clears], clears = None, None
    return [*lines]


def _behind_features(facts: Facts) -> set[int]:
    """Return the parameters of networks of which no output is used, but features that a hook takes from inside."""
    used = {row.event.module for row in facts.forwards if row.needed or row.in_loss or row.has_scalar}
    dropped = (row.event.parameters for row in facts.forwards if row.event.module not in used)
    return set().union(*(numbers for numbers in dropped if numbers & facts.moved_parameters))


def _layers_at_zero(facts: Facts) -> Iterator[Sentence]:
    """Yield what had a gradient of zero at every step: first layers, unless a weight was zero, or what is flat."""
    steps = [row for row in facts.events if row.kind == "step" and row.event and row.event.zeros is not None]
    steps = [(row.place, set().union(*row.sums.values()), row.event.zeros) for row in steps]  # where, used, zero
    terms = (row.term for p in facts.passes for row in p.terms)
    excused = set().union(*(term.reached for term in terms if term.weightless))
    excused |= set().union(*(numbers for *_, numbers in facts.once(zero_terms)))  # `dead` tells of the term
    flat = set().union(*(p.began.flat for p in facts.passes))
    flat -= set().union(*(p.reached - p.began.flat for p in facts.passes if p.split))
    for network, ids in facts.parameters.items():
        of_it = [(place, used, zero) for place, used, zero in steps if used & ids.keys()]
        stepped = [number for number in ids if any(number in used for _, used, _ in of_it)]
        still = {number for number in stepped if all(number in zero for _, used, zero in of_it if number in used)}
        still = still if still == {*stepped[: len(still)]} else still & flat
        if len(of_it) > 1 and still and not still & excused:
            text = f"{facts.count_of(still, network)} of {{}} had a gradient of exactly zero at every step."
            places = [place for place, *_ in of_it]
            yield Sentence(text, (network,), places, FLAT if still <= flat else AT_ZERO, question=True)
