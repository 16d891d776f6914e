"""What the comparisons share: contenders timed in turns, medians, the machine in words."""

import json
import platform
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from common.checkpoint import write_whole
from common.errors import counted


def clock(device: torch.device) -> float:
    """Return the time in seconds, after all that `device` still had to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def ms_in_turns(
    contenders: dict[str, Callable], turns: Iterable[list[tuple]], device: torch.device
) -> dict[str, list[float]]:
    """Return, for each contender, the milliseconds per call in each turn.

    A turn is a list of tuples of arguments; in it, each contender is called once with every tuple. The first call warms
    the caches, the others are timed together. Another contender goes first in each turn, so a slow phase of the machine
    slows all of them.
    """
    ms = {name: [] for name in contenders}
    names = list(contenders)
    for first, *others in turns:
        for name in names:
            contenders[name](*first)
            start = clock(device)
            for arguments in others:
                contenders[name](*arguments)
            ms[name].append(1e3 * (clock(device) - start) / len(others))
        names = names[1:] + names[:1]
    return ms


def spread(values: list[float], form: str = ".2f") -> str:
    """Return the median as text, with the smallest and the largest value in brackets."""
    return f"{median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def environment(device: torch.device) -> dict[str, str]:
    """Return what figures measured on `device` depend on: the machine, the number of threads, and torch."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    processor = names[0] if names else platform.processor() or platform.machine()
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "processor": f"{processor} ({counted(len(names), 'core') if names else '? cores'})",
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
    }


def conditions(result: dict[str, Any]) -> str:
    """Return how the figures in the result of a comparison were measured, as text to print above them."""
    options, machine = result["options"], ", ".join(f"{name} {text}" for name, text in result["environment"].items())
    return f"Measured on {machine}.\n\n`{options.get('networks') or options['model']}` on `{options['dataset']}`"


def make_result(options: Any, device: torch.device, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a comparison with its environment and options, but for those that name paths here."""
    choices = {name: value for name, value in asdict(options).items() if name not in ("runs_dir", "output")}
    return {"environment": environment(device), "options": choices} | figures


def write_result(path: Path | None, result: dict[str, Any]) -> None:
    """Write a result, once it is printed, to `path`, if given; raises Stopped if that fails."""
    if path:
        write_whole(path, json.dumps(result, indent=1).encode())
