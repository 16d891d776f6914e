"""What a training step costs: floating-point operations, live memory, time; and how such figures are put."""

import math
import platform
import re
import time
import weakref
from collections.abc import Callable, Iterable
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
from torch.utils.flop_counter import FlopCounterMode


def count_flops(call: Callable[[], object]) -> int:
    """Return the FLOPs of `call`: two for each multiplication of its matrix products and convolutions; others are free.

    That is the count of `torch.utils.flop_counter`: the same for every run and machine.
    """
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def forward_flops(network: nn.Module, inputs: Tensor) -> tuple[int, int]:
    """Return the FLOPs of a forward pass, and how many of them its first layer with any takes."""
    totals = []
    with FlopCounterMode(display=False) as counter:
        hook = register_module_forward_hook(lambda *_: totals.append(counter.get_total_flops()))
        try:
            network(inputs)
        finally:
            hook.remove()
    return totals[-1], next(filter(None, totals))


class LiveTensors(TorchDispatchMode):
    """Counts the bytes of the tensors alive while it is entered, and the most there were at once: `bytes`, `peak`.

    Each storage counts once, from the operation that makes it until nothing refers to it. What a kernel takes for
    itself while it runs is not seen, so the figure depends on the code alone: the same for every run and machine.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()):
        """Begin with `tensors`, those alive already."""
        super().__init__()
        self.bytes = self.peak = 0
        self.storages = weakref.WeakSet()
        self.add(tensors)

    def add(self, tensors: Iterable[object]) -> None:
        """Count those of `tensors` that are tensors with a storage not yet counted."""
        for tensor in tensors:
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage()) not in self.storages:
                self.storages.add(storage)
                self.bytes += storage.nbytes()
                self.peak = max(self.peak, self.bytes)
                weakref.finalize(storage, self._drop, storage.nbytes()).atexit = False

    def _drop(self, count: int) -> None:
        self.bytes -= count

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and count what it made."""
        result = function(*args, **(kwargs or {}))
        self.add(tree_leaves(result))
        return result


def seconds_in_turns(
    contenders: dict[str, Callable], turns: Iterable[list[tuple]], device: torch.device, untimed: int = 1
) -> dict[str, list[float]]:
    """Return, for each contender and turn, the seconds that a call took.

    In a turn each contender is called with every tuple of arguments in the turn's list; the first `untimed` calls warm
    the caches, the others are timed together. The contenders take turns, and turns in going first, so that a machine
    that is slow for a while is slow for all.
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
    """Return how many times as fast as the reference a contender was, turn by turn, of what `seconds_in_turns` gave."""
    return [theirs / own for theirs, own in zip(reference, seconds, strict=True)]


def quartiles(values: list[float]) -> list[float]:
    """Return the first and the third quartile: half of all values lie between them."""
    return np.quantile(values, [0.25, 0.75]).tolist()


def exponent(costs: list[float]) -> float:
    """Return e where cost grows as size^e, from costs (> 0) at sizes doubled one after another.

    It is the slope of log2(cost) over the number of doublings, by least squares.
    """
    return linear_regression(range(len(costs)), [math.log2(cost) for cost in costs]).slope


def environment(device: torch.device) -> dict[str, str]:
    """Return what figures measured on `device` depend on: the machine, threads and versions."""
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
    """Return what `environment` found as the sentence that figures begin with."""
    return "Measured on " + ", ".join(f"{name} {value}" for name, value in surroundings.items()) + "."


def spread(middle: float, quartiles: list[float], form: str = ".2f") -> str:
    """Return a median with its quartiles."""
    return f"{middle:{form}} ({quartiles[0]:{form}}-{quartiles[1]:{form}})"
