"""What a training step costs in floating-point operations, counted."""

from collections.abc import Callable
from fractions import Fraction

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

LAYERS = nn.Linear | nn.modules.conv._ConvNd


class Flops(TorchDispatchMode):
    """Counts the FLOPs inside a `with` block: `total`, two for each multiplication of matrix products and convolutions.

    The formulas are those of `torch.utils.flop_counter`: the same count for every run and machine. `FlopCounterMode`
    itself also hooks the modules, and raises where autograd.grad() differentiates with respect to what a module was
    called with, as a gradient penalty does.
    """

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and count it, if there is a formula for it."""
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function._overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def count_flops(call: Callable[[], object]) -> int:
    """Return the FLOPs of `call`, as `Flops` counts them."""
    with Flops() as counter:
        call()
    return counter.total


def layer_flops(network: nn.Module, inputs: Tensor) -> list[tuple[int, int]]:
    """Return two counts for each layer of `network`, in the order of its forward pass over `inputs`.

    The first is the FLOPs of its forward pass. The second is what its second derivative computes and cuts off: PyTorch
    computes the gradient of a convolution's filters in the backward pass of its backward pass as that of bigger
    filters, which reach also the rows that stride and size leave out. Layers are linear, or convolutions without
    dilation; other modules must not multiply matrices.
    """
    counts = []

    def count(layer: nn.Module, inputs: tuple[Tensor], _: Tensor) -> None:
        bigger = Fraction(1)
        if not isinstance(layer, nn.Linear):
            for side, stride, pad, size in zip(
                layer.kernel_size, layer.stride, layer.padding, inputs[0].shape[2:], strict=True
            ):
                bigger *= Fraction(side + (size + 2 * pad - side) % stride, side)
        flops = count_flops(lambda: layer.forward(inputs[0]))
        counts.append((flops, int(flops * (bigger - 1))))

    hooks = [layer.register_forward_hook(count) for layer in network.modules() if isinstance(layer, LAYERS)]
    try:
        network(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return counts
