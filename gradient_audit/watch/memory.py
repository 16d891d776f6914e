"""What is known of the memory of tensors, beyond what they hold."""

import weakref
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from gradient_audit.places import Place
from gradient_audit.trace import Cut
from gradient_audit.watch.frames import Lines, runs_inside
from gradient_audit.watch.sources import NOTHING, NUMBER, PARAMETER, Sources
from gradient_audit.watch.tensors import node_of, tensors_in

PLAIN = (Tensor, nn.Parameter)


@dataclass(eq=False)
class Memory:
    """What is known of a storage, whose address may be used again."""

    sources: Sources = NOTHING
    lines: Lines = ()  # of a constant: where it was computed
    origins: set["Memory"] = field(default_factory=set)  # likewise: from what
    total: "Constant | None" = None  # likewise: that, if it is a sum
    reader: weakref.ref | None = None  # the tensor that a graph has read, a leaf if there is one
    rebuilt: Place | None = None  # where it was made from numbers that were tensors
    # Behind it, what cut something off its graph: what that was computed from, by the mistake and the line.
    cuts: dict[tuple[str, Place], Sources] = field(default_factory=dict)

    def add_cuts(self, cuts: dict[tuple[str, Place], Sources]) -> None:
        """Add cuts, the nearest last."""
        for cut, sources in cuts.items():
            self.cuts[cut] = self.cuts.get(cut, NOTHING) | sources

    def each_cut(self) -> tuple[Cut, ...]:
        """Return its cuts as plain data."""
        numbers = (frozenset([*s.numbers(PARAMETER), *s.numbers(NUMBER)]) for s in self.cuts.values())
        return tuple((*cut, sources) for cut, sources in zip(self.cuts, numbers, strict=True))


class Constant(NamedTuple):
    """A summand without a graph: its value, or sum."""

    value: float
    sources: Sources
    memory: Memory


class Write(NamedTuple):
    """A write to a tensor that a graph has read."""

    memory: Memory
    version: int  # before
    name: str  # of the operation; "" for a step
    place: Place
    hidden: int = 0  # the sequence number of the next node, if no version was raised that PyTorch would compare


def plain_tensors(value: object) -> list[Tensor]:
    """Return the tensors in `value` but those of a subclass, as a compiler's."""
    return [tensor for tensor in tensors_in(value) if type(tensor) in PLAIN]


def is_hidden(memory: Memory, written: Tensor) -> bool:
    """Whether a write raises another version than the one that autograd compares, as one through `.data` does."""
    tensor = None if runs_inside("distributed", "gradcheck.py") else memory.reader()  # which write the same anew
    if tensor is None or node_of(tensor) or not tensor.is_contiguous():
        return False
    version, start = tensor._version, tensor.data_ptr()
    with torch.autograd._unsafe_preserve_version_counter(written):
        increment_version(written)
        apart = tensor._version == version
    return apart and start <= written.data_ptr() < start + tensor.nbytes
