"""What the script makes, what builds graphs, and what comes through these."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradient_audit.places import Place
from gradient_audit.trace.event import NONE, Event, Numbers

# What cut a result off its graph: the mistake that it may be, the line, the parameters behind what was cut off.
Cut = tuple[str, Place, Numbers]


@dataclass(frozen=True)
class ParameterFound(Event):
    """A parameter got its number. made: the line that made it, if that was seen."""

    number: int
    made: Place | None


@dataclass(frozen=True)
class OptimizerMade(Event):
    """An optimizer was made, for these parameters; one made again at that line for the same has the same number."""

    place: Place
    number: int
    parameters: Numbers


@dataclass(frozen=True)
class Replaced(Event):
    """Parameters of a module took the place of others in it."""

    place: Place
    new: Numbers
    old: Numbers


@dataclass(frozen=True)
class RequiresGradSet(Event):
    """`requires_grad_()` of a module was called."""

    place: Place
    parameters: Numbers
    on: bool


@dataclass(frozen=True)
class DetailSet(Event):
    """What follows is watched in detail, or, every second time, no longer."""


@dataclass(frozen=True)
class Compiled(Event):
    """`torch.compile` was used: nothing is watched in detail from there on, as that would change what is compiled."""

    place: Place


@dataclass(frozen=True)
class Forward(Event):
    """A forward pass of a module has ended; those inside of it came before."""

    place: Place
    number: int
    module: int
    parameters: Numbers  # of the module
    inside: Numbers  # the forward passes that ran in it
    callers: tuple[Place, ...]  # the frames that led to it, innermost first; a library's by way of the user's line
    has_graph: bool
    sources: Numbers  # the parameters behind its output, with a graph or without
    without_grad: bool  # it ran under no_grad()
    is_frozen: bool  # no parameter of the module required a gradient
    checkpointed: bool  # it ran inside of a reentrant checkpoint


@dataclass(frozen=True)
class Term:
    """A term of the loss of a pass, as the graph shows it before the pass."""

    place: Place | None  # where it was computed, if that was seen
    name: str
    value: float | None = None  # of a constant
    sources: Numbers = NONE  # the parameters that it was computed from, with a graph or without
    calls: Numbers = NONE  # of a constant: the calls of autograd that it was computed from
    without_grad: Numbers = NONE  # likewise: the parameters that were read under no_grad()
    cuts: tuple[Cut, ...] = ()  # behind it, the nearest last
    reached: Numbers = NONE  # the parameters that its graph leads to
    at_zero: bool = False  # its value is zero, and its gradient may be because of that
    weightless: bool = False  # the loss multiplies it by zero
    # By parameter, if it was measured: the square of its gradient's norm, and the product with that of all terms.
    measured: Mapping[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PassBegan(Event):
    """A call of autograd begins: "backward", or "grad" for autograd.grad()."""

    place: Place
    number: int
    kind: str
    detailed: bool  # it is watched in detail, and the loss of a backward pass is split into terms
    create_graph: bool = False
    has_graph: bool = False  # of a backward pass: how long it exists is watched
    callers: tuple[Place, ...] = ()
    named: Numbers = NONE  # the parameters that `inputs=` names
    crossed: Numbers = NONE  # of "grad": the parameters of the operations on its way
    terms: tuple[Term, ...] = ()
    unmeasured: str = ""  # why the terms were not measured
    hooked: bool = False  # code of the script's runs in it
    outputs: tuple[tuple[int, int, Numbers], ...] = ()  # forward passes in its graph, their modules, what they lead to
    flat: Numbers = NONE  # the parameters that its graph leads to through `round()`, `sign()` and the like alone
    # The first node in its graph that read a parameter before the last step on it, its line, and all such parameters.
    outdated: tuple[int, Place, Numbers] | None = None
    cuts: tuple[Cut, ...] = ()  # behind its loss
    sources: Numbers = NONE  # the parameters behind its loss, with a graph or without
    adds_to_used: bool = False  # it adds to the gradient of a leaf from which the script has computed
    nan: bool = False  # its loss is NaN
    for_adjoint: bool = False  # an autograd.Function calls it for its own result
    functional: bool = False  # torch.func calls it


@dataclass(frozen=True)
class Pass(Event):
    """A call of autograd has ended. Of "grad" only `raised` tells: its result is no `.grad` yet."""

    number: int
    reached: Numbers = NONE  # the parameters whose gradients it added to
    zeros: Numbers = NONE  # of these, gradients of exactly zero
    dropped: Numbers = NONE  # of those reached, whose hook has used the gradient and cleared it
    leaves: Numbers = NONE  # other leaves that have a gradient now
    raised: bool = False


@dataclass(frozen=True)
class GraphUsed(Event):
    """A call of autograd came through the graph of a forward pass, or of another call.

    direction: of a backward pass, between -1 and 1, in which way it moves the output of a module.
    """

    built: int
    number: int | None  # of the call, if it is watched
    direction: float | None


@dataclass(frozen=True)
class GraphExtended(Event):
    """A line computed on from the graph of a call that has ended."""

    place: Place
    number: int


@dataclass(frozen=True)
class TermCrossed(Event):
    """The pass `by` goes through the node of a term of another pass. is_whole: that of a term that is one number."""

    number: int
    term: int
    is_whole: bool
    by: int


@dataclass(frozen=True)
class ScalarComputed(Event):
    """A number with a graph was computed from the output of a forward pass."""

    forward: int


@dataclass(frozen=True)
class NanFound(Event):
    """The result of this line, or its gradient, was the first NaN."""

    place: Place
