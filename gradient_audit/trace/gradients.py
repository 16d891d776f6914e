"""What becomes of gradients, and why a pass raised."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradient_audit.places import Place
from gradient_audit.trace.event import NONE, Event, Numbers
from gradient_audit.trace.graphs import Cut


@dataclass(frozen=True)
class GradientReplaced(Event):
    """Another tensor is the gradient of a parameter, or none, or it was set to zero."""

    parameter: int
    zero: bool
    calls: Numbers | None = NONE  # that it was computed from; None: not known
    borrowed: bool = False  # it is another parameter's, as that of a replica
    strangers: Numbers = NONE  # other parameters of its calls, that it is the gradient of


@dataclass(frozen=True)
class GradientRead(Event):
    """The script computed something from gradients of a call. how: "read", "copied", "for inputs" or "for backward"."""

    number: int
    how: str


@dataclass(frozen=True)
class ZeroGrad(Event):
    """`zero_grad()` was called."""

    place: Place
    parameters: Numbers
    lost: Numbers = NONE  # of these, that the step which runs was to use, and has not yet


@dataclass(frozen=True)
class Clipped(Event):
    """A line clipped gradients, or wrote to them.

    fate: "used" by a step, "edited" after one, "empty" if it was given none, "" until a step comes.
    """

    place: Place
    parameters: Numbers
    fate: str


@dataclass(frozen=True)
class Unscaled(Event):
    """GradScaler divided gradients by its scale, or found some infinite, whose step it skips."""

    parameters: Numbers
    infinite: Numbers = NONE


@dataclass(frozen=True)
class ScaleWrong(Event):
    """Gradients were divided by a scale that their loss was not multiplied by, or the other way round."""

    place: Place
    how: str  # "divided" only, "multiplied" only, or divided by "another"


@dataclass(frozen=True)
class Step(Event):
    """An optimizer stepped, or a closure of its step has ended."""

    place: Place
    optimizer: int
    parameters: Numbers  # that it holds
    trained: Numbers  # of these, that require a gradient
    with_gradient: Numbers  # of these, that have one
    empty: Numbers  # of these, that no known pass has filled, and that are zero
    inside: int | None  # the pass that runs: a hook of the script's has called
    inner: bool  # it runs inside another step
    nan: Numbers = NONE  # parameters whose gradients were NaN
    zeros: Numbers | None = None  # those whose gradients were exactly zero; None: not in detail
    # In detail, by parameter: the largest absolute value of its gradient, if that is plain numbers.
    sizes: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class HandStep(Event):
    """The script wrote to parameters what it computed from gradients of passes. alone: no other belongs to it."""

    place: Place
    parameters: Numbers
    calls: Numbers
    alone: bool = False
    strangers: Numbers = NONE  # see `GradientReplaced`


@dataclass(frozen=True)
class Overwritten(Event):
    """A pass needed tensors that were changed in place."""

    place: Place
    tensors: tuple[tuple[int, str], ...]  # numbers, with a description
    readers: tuple[Place, ...]
    writers: tuple[tuple[Place, str], ...]  # with the operation, "" for a step
    behind: Numbers  # the parameters to which the gradient goes through these tensors
    hidden: bool  # PyTorch alone gives no error


@dataclass(frozen=True)
class Freed(Event):
    """A pass needed a graph that another one had freed."""

    place: Place
    number: int
    by: int
    built: tuple[Place | None, ...]
    used: tuple[Place | None, ...]
    cuts: tuple[Place, ...]  # where `detach()` was on the way to the loss
    earlier: bool  # the freed part is of an earlier turn of the loop
    behind: Numbers  # the parameters behind that part
    ahead: Numbers  # all that either pass reaches


@dataclass(frozen=True)
class GraphMissing(Event):
    """A pass was called on a loss without a graph. forwards: the forward passes that it was computed by."""

    place: Place
    forwards: tuple[int, ...]
    cuts: tuple[Cut, ...]  # the nearest last
    frozen: Numbers  # the parameters that are, now
