"""What a training step costs: floating-point operations, live memory and time; and the text of such figures."""

import math
import platform
import re
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from statistics import linear_regression
from unittest.mock import patch

import numpy as np
import torch
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


PHASES = "forward", "back through D", "back through G", "the rest"


class Phases(ExitStack):
    """Inside a `with` block, adds up what each part of a GAN's training step takes, by any meter.

    meter: returns a number that grows, such as seconds on the CPU, or the FLOPs so far. The result is in `taken`, by
    the names in PHASES: the forward passes of both networks; the backward passes, up to the moment when the gradient
    reaches G's output, and from then on; and all else, such as the losses and the optimizers.
    """

    def __init__(self, generator: nn.Module, discriminator: nn.Module, meter: Callable[[], float]):
        """Start from zero."""
        super().__init__()
        self.networks, self.meter = (generator, discriminator), meter
        self.taken = dict.fromkeys(PHASES, 0)

    def turn_to(self, phase: str) -> None:
        """Count what the meter shows towards the phase that ends here."""
        now = self.meter()
        self.taken[self.phase] += now - self.since
        self.phase, self.since = phase, now

    def __enter__(self):
        """Add hooks to the networks, and to the two functions of autograd that every backward pass calls."""
        for network in self.networks:
            self.callback(network.register_forward_pre_hook(lambda *_: self.turn_to("forward")).remove)
            self.callback(network.register_forward_hook(self.forward_is_over).remove)
        for name in ("backward", "grad"):
            timed = self.in_phases(getattr(torch.autograd, name))
            self.enter_context(patch.object(torch.autograd, name, timed))
        self.callback(self.turn_to, PHASES[-1])
        self.phase, self.since = PHASES[-1], self.meter()
        return self

    def forward_is_over(self, network: nn.Module, _: tuple, output: Tensor) -> None:
        """End the phase, and have the gradient of G's output begin the one of G."""
        self.turn_to(PHASES[-1])
        if network is self.networks[0] and output.requires_grad:
            output.register_hook(lambda _: self.turn_to("back through G"))

    def in_phases(self, backward: Callable) -> Callable:
        """Return `backward`, one of autograd's functions, that starts in D's phase."""

        def timed(*args, **kwargs):
            self.turn_to("back through D")
            try:
                return backward(*args, **kwargs)
            finally:
                self.turn_to(PHASES[-1])

        return timed


def seconds_in_turns(
    contenders: dict[str, Callable], turns: Iterable[list[tuple]], device: torch.device, untimed: int = 1
) -> dict[str, list[float]]:
    """Return, for each contender, the seconds per call in each turn.

    A turn is a list of tuples of arguments; in it, each contender is called once with every tuple. The first `untimed`
    calls warm the caches, the others are timed together. Another contender goes first in each turn, so a slow phase of
    the machine slows all of them.
    """
    seconds = {name: [] for name in contenders}
    names = list(contenders)
    for calls in turns:
        for name in names:
            for arguments in calls[:untimed]:
                contenders[name](*arguments)
            start = clock(device)
            for arguments in calls[untimed:]:
                contenders[name](*arguments)
            seconds[name].append((clock(device) - start) / (len(calls) - untimed))
        names = names[1:] + names[:1]
    return seconds


def clock(device: torch.device) -> float:
    """Return the time in seconds, after all that `device` still had to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


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
        "torchvision": version("torchvision"),
    }


def conditions(surroundings: dict[str, str]) -> str:
    """Return the result of `environment` as a sentence to print above the figures."""
    return "Measured on " + ", ".join(f"{name} {value}" for name, value in surroundings.items()) + "."


def spread(middle: float, quartiles: list[float], form: str = ".2f") -> str:
    """Return a median with its quartiles as text."""
    return f"{middle:{form}} ({quartiles[0]:{form}}-{quartiles[1]:{form}})"
