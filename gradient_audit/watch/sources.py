"""Sources: what a number was computed from."""

from collections.abc import Callable
from functools import cache
from operator import or_

from gradient_audit.watch.tensors import tensors_in

CHOOSING = ("index", "indices", "target", "targets")  # arguments; of these, integers choose among numbers
# A parameter; the result of a call of autograd; of a forward pass; the same with its graph; a parameter under
# no_grad(); a parameter, by way of numbers that the script has read; the gradient of a parameter.
KINDS = PARAMETER, CALL, FORWARD, GRAPH, WITHOUT_GRAD, NUMBER, GRADIENT = range(7)


class Sources:
    """A set of sources: of each kind, numbers."""

    __slots__ = ("_bits",)

    def __init__(self, bits: tuple[int, ...] = (0,) * len(KINDS)):
        self._bits = bits

    @classmethod
    def of(cls, kind: int, *numbers: int) -> "Sources":
        """Return the sources of one kind with these numbers."""
        bits = 0
        for number in numbers:
            bits |= 1 << number
        return cls(tuple(bits if kind == other else 0 for other in KINDS))

    def __or__(self, other: "Sources") -> "Sources":
        if self is NOTHING or other is NOTHING:  # mostly
            return other if self is NOTHING else self
        return Sources(tuple(map(or_, self._bits, other._bits)))

    def __bool__(self) -> bool:
        return any(self._bits)

    def has(self, kind: int) -> bool:
        """Return whether any source is of this kind."""
        return bool(self._bits[kind])

    def numbers(self, kind: int) -> list[int]:
        """Return the numbers of the sources of one kind, in their order."""
        bits, found = self._bits[kind], []
        while bits:
            low = bits & -bits
            found.append(low.bit_length() - 1)
            bits ^= low
        return found

    def without(self, kind: int) -> "Sources":
        """Return the sources of the other kinds."""
        return Sources(tuple(0 if kind == other else bits for other, bits in zip(KINDS, self._bits, strict=True)))


NOTHING = Sources()


def choices_of(function: Callable, args: tuple) -> list[int]:
    """Return which arguments of an operation only choose among the numbers of others, by their positions.

    The result is not computed from these, as the likelihood of what was sampled, by a network of reference.
    """
    found = [index for index in _choosing(function) if index < len(args)]
    return [index for index in found if not any(x.is_floating_point() for x in tensors_in(args[index]))]


@cache
def _choosing(function: Callable) -> list[int]:
    return [index for index, argument in enumerate(function._schema.arguments) if argument.name in CHOOSING]
