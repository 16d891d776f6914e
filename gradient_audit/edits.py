"""What is done to gradients between a pass and a step: clipping that no step reads, or of scaled gradients; and NaN."""

from collections.abc import Iterator
from contextlib import suppress

from torch import Tensor, nn

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding
from gradient_audit.graph import tensors_in
from gradient_audit.places import Place


def has_nan(value: object) -> bool:
    """Whether a tensor among the values has a NaN."""
    with suppress(RuntimeError, NotImplementedError):  # of tensors without numbers, or of a kind that cannot say
        tensors = (tensor for tensor in tensors_in(value) if type(tensor) in (Tensor, nn.Parameter))
        # A sum costs less, and tells mostly; it is NaN, too, of two infinities.
        return any(bool(t.sum().isnan()) and bool(t.isnan().any()) for t in tensors if t.is_floating_point())
    return False


def edited_gradients(facts: Facts) -> Iterator[Finding]:
    """Yield the lines that clip in vain, and where the first NaN came from if a step used it."""
    for place, clip in facts.record.clips.items():
        if clip == "scaled":
            yield finding("scaled", (), "gradients were clipped while they were multiplied by the loss scale.", [place])
        elif not clip and facts.steps:
            yield finding("clipped", (), "no step used the gradients that were clipped here.", [place])
    steps = [event for event in facts.record.events if event.kind == "step" and event.nan]
    lost = [p for p in facts.record.passes if p.nan]
    if steps or lost:
        numbers = set().union(*(event.nan for event in steps))
        begin: list[Place] = [place for place in (facts.record.nan,) if place]
        text = "a step used gradients of {} that are NaN." if steps else "the loss of a backward pass is NaN."
        places = [*begin, (steps or lost)[0].place]
        yield finding("nan", facts.networks_of(numbers), text, places, doubtful=not steps)
