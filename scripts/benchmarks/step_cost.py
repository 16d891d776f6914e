"""What a training step costs in FLOPs and memory, counted for `compare_updates.py`: the same in every run."""

import re
import weakref
from collections.abc import Iterable

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

WITH_VECTORS = {"mv": 0, "dot": 0, "vdot": 0, "addmv": 1}  # by operation: the operand, each number of it used once
# In the name of an operation, the word that tells that it multiplies.
WITHOUT_FORMULA = re.compile(
    r"(^|_)(rnn|attention|trilinear|cdist|linear|linalg(?!_(vector_norm|check|cross))|cholesky|fft"
    r"|conv(\d\w|olution)?|[a-z]*mm)(_|$)"
)


class StepCost(TorchDispatchMode):
    """Has in `flops` and `peak` what the code inside a `with` block costs, backward passes included.

    FLOPs are those of matrix products and convolutions, two a multiplication, by the formulas of
    `torch.utils.flop_counter`; `uncounted` has the names of operations that compute some, but have no formula, such as
    that of nn.LSTM on the CPU. `FlopCounterMode` itself also hooks the modules, and raises where autograd.grad()
    differentiates with respect to what a module was called with, as a gradient penalty does.

    The peak is that of the bytes of all live tensors that the block makes, and of those in `live`, which it may free.
    It has what autograd keeps for a backward pass, but no workspace that a kernel takes and gives back.
    """

    def __init__(self, live: Iterable[Tensor] = ()):
        super().__init__()
        self.flops = self.bytes = self.peak = 0
        self.uncounted: set[str] = set()
        for tensor in live:
            self.follow(tensor)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation, count it if there is a formula for it, and follow the memory that it takes."""
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function._overloadpacket):
            self.flops += formula(*args, **(kwargs or {}), out_val=result)
        elif (name := function._overloadpacket.__name__) in WITH_VECTORS:
            self.flops += 2 * args[WITH_VECTORS[name]].numel()
        elif WITHOUT_FORMULA.search(name):
            self.uncounted.add(name)
        known = {x.untyped_storage().data_ptr() for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        for tensor in (x for x in tree_leaves(result) if isinstance(x, Tensor)):
            if tensor.untyped_storage().data_ptr() not in known:  # neither a view nor in place
                self.follow(tensor)
        return result

    def follow(self, tensor: Tensor) -> None:
        """Add the bytes of a tensor until the last reference to its memory is gone."""
        storage = tensor.untyped_storage()
        self.add(storage.nbytes())
        weakref.finalize(storage, self.add, -storage.nbytes())

    def add(self, count: int) -> None:
        """Add so many bytes to those that are live."""
        self.bytes += count
        self.peak = max(self.peak, self.bytes)
