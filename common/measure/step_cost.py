"""What a training step costs: floating-point operations, live memory and time; and the text of such figures."""

import math
import platform
import re
import time
import weakref
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import linear_regression

import numpy as np
import torch
import torchvision
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

LAYERS = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def count_flops(call: Callable[[], object]) -> int:
    """Return the FLOPs of `call`: two for each multiplication of its matrix products and convolutions, no others.

    The count is that of `torch.utils.flop_counter`: the same for every run and machine.
    """
    with Flops() as counter:
        call()
    return counter.total


class Flops(TorchDispatchMode):
    """Counts the FLOPs inside a `with` block (`total`) by the formulas of `torch.utils.flop_counter`.

    `FlopCounterMode` also hooks the modules, and raises where autograd.grad() differentiates with respect to what a
    module was called with, as a gradient penalty does.
    """

    def __init__(self):
        """Start from zero."""
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and count it, if there is a formula for it."""
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function._overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def forward_flops(network: nn.Module, inputs: Tensor) -> tuple[int, int]:
    """Return the FLOPs of a forward pass, and those of the first layer that has any."""
    totals = []
    with FlopCounterMode(display=False) as counter:
        hook = register_module_forward_hook(lambda *_: totals.append(counter.get_total_flops()))
        try:
            network(inputs)
        finally:
            hook.remove()
    return totals[-1], next(filter(None, totals))


def second_derivative_flops(network: nn.Module, inputs: Tensor) -> tuple[int, int]:
    """Return the FLOPs of the last layer's forward pass, and what a second derivative computes and cuts off.

    PyTorch computes the gradient of a convolution's filters in the backward pass of its backward pass as that of bigger
    filters, which reach also the rows that stride and size leave out. Layers are linear, or convolutions without
    dilation.
    """
    flops, spare = [], []

    def note(layer: nn.Module, given: tuple[Tensor], _: Tensor) -> None:
        bigger = Fraction(1)
        if not isinstance(layer, nn.Linear):
            for side, stride, pad, size in zip(
                layer.kernel_size, layer.stride, layer.padding, given[0].shape[2:], strict=True
            ):
                bigger *= Fraction(side + (size + 2 * pad - side) % stride, side)
        flops.append(count_flops(lambda: layer.forward(given[0])))
        spare.append(int(flops[-1] * (bigger - 1)))

    layers = [layer for layer in network.modules() if isinstance(layer, LAYERS)]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        network(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return flops[-1], sum(spare)


class LiveTensors(TorchDispatchMode):
    """Counts, inside a `with` block, the bytes of live tensors (`bytes`) and their maximum (`peak`).

    Each storage counts once, from the operation that makes it until nothing refers to it. The temporary memory of
    kernels is not counted, so the figure depends on the code alone: the same for every run and machine.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()):
        """Start with `tensors`, those that exist already."""
        super().__init__()
        self.bytes = self.peak = 0
        self.storages = weakref.WeakSet()
        self.add(tensors)

    def add(self, tensors: Iterable[object]) -> None:
        """Count the storages of `tensors` that are not yet counted; other objects are skipped."""
        for tensor in tensors:
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage()) not in self.storages:
                self.storages.add(storage)
                self.bytes += storage.nbytes()
                self.peak = max(self.peak, self.bytes)
                weakref.finalize(storage, self._drop, storage.nbytes()).atexit = False

    def _drop(self, count: int) -> None:
        self.bytes -= count

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and count the tensors it returns."""
        result = function(*args, **(kwargs or {}))
        self.add(tree_leaves(result))
        return result


def seconds_in_turns(
    contenders: dict[str, Callable], turns: Iterable[list[tuple]], device: torch.device, untimed: int = 1
) -> dict[str, list[float]]:
    """Return, for each contender, the seconds per call in each turn.

    A turn is a list of tuples of arguments; in it, each contender is called once with every tuple. The first `untimed`
    calls warm the caches, the others are timed together. Another contender goes first in each turn, so a slow phase of
    the machine slows all of them.
    """
    synchronize = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    seconds = {name: [] for name in contenders}
    names = list(contenders)
    for calls in turns:
        for name in names:
            for arguments in calls[:untimed]:
                contenders[name](*arguments)
            synchronize()
            start = time.perf_counter()
            for arguments in calls[untimed:]:
                contenders[name](*arguments)
            synchronize()
            seconds[name].append((time.perf_counter() - start) / (len(calls) - untimed))
        names = names[1:] + names[:1]
    return seconds


def speeds(reference: list[float], seconds: list[float]) -> list[float]:
    """Return, turn by turn, the reference's seconds divided by the contender's, both from `seconds_in_turns`."""
    return [theirs / own for theirs, own in zip(reference, seconds, strict=True)]


def quartiles(values: list[float]) -> list[float]:
    """Return the first and the third quartile."""
    return np.quantile(values, [0.25, 0.75]).tolist()


def exponent(costs: list[float]) -> float:
    """Return e for a cost that grows as size^e, from the costs (> 0) of sizes that double from one to the next.

    It is the slope of log2(cost) over the number of doublings, by least squares.
    """
    return linear_regression(range(len(costs)), [math.log2(cost) for cost in costs]).slope


def environment(device: torch.device) -> dict[str, str]:
    """Return what figures measured on `device` depend on: the machine, the number of threads, and versions."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    processor = names[0] if names else platform.processor() or platform.machine()
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "processor": f"{processor} ({len(names) or '?'} cores)",
        "threads": str(torch.get_num_threads()),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
    }


def conditions(surroundings: dict[str, str]) -> str:
    """Return the result of `environment` as a sentence to print above the figures."""
    return "Measured on " + ", ".join(f"{name} {value}" for name, value in surroundings.items()) + "."


def spread(middle: float, quartiles: list[float], form: str = ".2f") -> str:
    """Return a median with its quartiles as text."""
    return f"{middle:{form}} ({quartiles[0]:{form}}-{quartiles[1]:{form}})"
