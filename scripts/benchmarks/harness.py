"""What the comparisons share: options, contenders timed in turns, a table of medians, the machine in words."""

import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from common.models import MODELS
from common.run.folder import write_whole
from common.run.markdown import table
from common.run.options import DataOptions, NetworkOptions
from scripts.tools.finished_run import make_own_networks


@dataclass(frozen=True)
class ComparisonOptions(NetworkOptions, DataOptions):
    """What is compared on which networks and data."""

    networks: str | None = None
    """FILE:FUNCTION that makes networks of your own, (image_shape, z_dim) -> (generator, discriminator). FILE is
    executed. None takes those of --model."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


@contextmanager
def own_networks(options: ComparisonOptions) -> Iterator[None]:
    """Have `--model` mean the networks of `--networks`, if there are any, within the block."""
    own = {options.model: partial(make_own_networks, options.networks)} if options.networks else {}
    with patch.dict(MODELS, own):
        yield


def networks_in_words(options: dict[str, Any]) -> str:
    """Return which networks and data the stored `options` name."""
    return f"`{options['networks'] or options['model']}` on `{options['dataset']}`"


def clock(device: torch.device) -> float:
    """Return the time in seconds, after all that `device` still had to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds_per_call(contender: Callable, calls: list[tuple], device: torch.device) -> float:
    """Call the contender with each tuple of arguments in `calls`; return the mean seconds of a call."""
    start = clock(device)
    for arguments in calls:
        contender(*arguments)
    return (clock(device) - start) / len(calls)


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
            seconds[name].append(seconds_per_call(contenders[name], calls[untimed:], device))
        names = names[1:] + names[:1]
    return seconds


def timings(seconds: dict[str, list[float]], baseline: str) -> dict[str, dict]:
    """Return the rows of a table, given the seconds of each contender by turn.

    `ms` is the median over the turns, `quartiles` its spread. `speed` is the median over the turns of the time of the
    contender `baseline` divided by the contender's own, `speed_quartiles` its spread.
    """
    rows = {}
    for name, own in seconds.items():
        speeds = [reference / second for reference, second in zip(seconds[baseline], own, strict=True)]
        rows[name] = {
            "ms": 1e3 * median(own),
            "quartiles": [1e3 * quartile for quartile in quartiles(own)],
            "speed": median(speeds),
            "speed_quartiles": quartiles(speeds),
        }
    return rows


def quartiles(values: list[float]) -> list[float]:
    """Return the first and the third quartile."""
    return np.quantile(values, [0.25, 0.75]).tolist()


def spread(middle: float, limits: list[float], form: str = ".2f") -> str:
    """Return a median as text, with its limits, such as its quartiles, in brackets."""
    return f"{middle:{form}} ({limits[0]:{form}}-{limits[1]:{form}})"


def timing_table(
    head: str, rows: dict[str, dict], images: int, columns: dict[str, Callable[[dict], str]] | None = None
) -> str:
    """Return the result of `timings` as a Markdown table, with the images that a contender takes in a second.

    head: of the column of names. images: how many one call takes. columns: more of them, each a function of a row.
    A row that was not timed has the reason, `why`.
    """
    columns = columns or {}
    lines = []
    for name, row in rows.items():
        if "why" in row:
            lines.append([name, *[""] * (2 + len(columns)), row["why"]])  # in the last column, which may be wide
            continue
        rate, least, most = (1e3 * images / ms for ms in (row["ms"], *reversed(row["quartiles"])))
        timed = [spread(row["ms"], row["quartiles"]), spread(row["speed"], row["speed_quartiles"])]
        timed.append(spread(rate, [least, most], ",.0f"))
        lines.append([name, *timed, *(text(row) for text in columns.values())])
    return table([head, "ms", "speed", "images/s", *columns], lines)


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


def write_result(options: Any, device: torch.device, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a comparison with its environment and options; write them to `options.output`, if given.

    Options that name paths of this machine are left out.
    """
    choices = {name: value for name, value in asdict(options).items() if name not in ("runs_dir", "output")}
    result = {"environment": environment(device), "options": choices} | figures
    if options.output:
        write_whole(options.output, lambda file: file.write(json.dumps(result, indent=1).encode()))
    return result
