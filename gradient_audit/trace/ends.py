"""What is known when the audit ends."""

from collections.abc import Mapping
from dataclasses import dataclass

from gradient_audit.places import Place
from gradient_audit.trace.event import NONE, Event, Numbers


@dataclass(frozen=True)
class Network(Event):
    """A network: a column of the table."""

    name: str
    module: int
    kind: str  # "parameter" for a tensor beside all modules, else its class: "Embedding" is PyTorch's
    parameters: Mapping[int, str]  # names by number
    size: int  # how many numbers it has
    made: Place | None


@dataclass(frozen=True)
class Optimizer(Event):
    """An optimizer that stepped, or holds a watched parameter."""

    number: int
    kind: str  # the name of its class
    parameters: tuple[int, ...]  # in their order, with those that it holds twice
    leaves: Numbers  # plain tensors that it holds and that got gradients
    constants: tuple[tuple[int, ...], ...]  # shapes of plain tensors that need no gradient, if PyTorch made its class
    fused: bool
    has_state: bool
    made: Place | None


@dataclass(frozen=True)
class TensorNamed(Event):
    """A tensor of an `Overwritten` is one of a network, or a leaf that is no parameter is an attribute of a module."""

    tensor: int
    network: str
    name: str


@dataclass(frozen=True)
class Excerpt(Event):
    """Lines of a file, around those that events name."""

    file: str
    lines: Mapping[int, str]


@dataclass(frozen=True)
class Ended(Event):
    """The audit has ended."""

    by_itself: bool = True  # the script was not stopped
    whole: bool = False  # all of the script ran
    version: str = ""  # of PyTorch
    gone: Numbers = NONE  # forward passes and calls whose graphs no longer exist
    written: Numbers = NONE  # parameters to which the script wrote what it computed from others, as an average
    written_from: Numbers = NONE  # the others
    alike: tuple[Numbers, ...] = ()  # parameters in one memory
    unused_sums: tuple[Place, ...] = ()  # no pass came through them but through a summand, and never through another
    lines_not_run: tuple[str, ...] = ()  # that call autograd, in files of which other such lines ran
