"""What a training step costs in floating-point operations, counted."""

from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class Flops(TorchDispatchMode):
    """Has in `counts` the FLOPs of each matrix product and convolution inside a `with` block, two a multiplication.

    The formulas are those of `torch.utils.flop_counter`: the same count for every run and machine. `FlopCounterMode`
    itself also hooks the modules, and raises where autograd.grad() differentiates with respect to what a module was
    called with, as a gradient penalty does.
    """

    def __init__(self):
        super().__init__()
        self.counts: list[int] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and count it, if there is a formula for it."""
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function._overloadpacket):
            self.counts.append(formula(*args, **(kwargs or {}), out_val=result))
        return result


def count_flops(call: Callable[[], object]) -> list[int]:
    """Return the FLOPs of each matrix product and convolution of `call`, in the order in which they run."""
    with Flops() as counter:
        call()
    return counter.counts
