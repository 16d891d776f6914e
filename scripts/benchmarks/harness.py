"""What the benchmarks share: runs of scripts, contenders timed in turns, and figures with what they depend on."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from common.checkpoint import write_whole
from common.errors import Stopped, counted, show_lines

ROOT = Path(__file__).resolve().parents[2]
PLACES = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(PLACES)}  # for copies of scripts, which lie elsewhere


def run_script(script: Path, arguments: list, runs: Path, cwd: Path, look: Callable = lambda run: None) -> Path:
    """Run a training script in the folder `cwd`, and return its run, which is made in `runs`.

    look: is called with the run again and again while it trains. Raises Stopped if the script fails.
    """
    folder = Path(cwd, runs, script.stem)
    before = {*folder.glob("*")}
    command = [sys.executable, script, "--runs-dir", runs, *arguments]
    with subprocess.Popen([*map(str, command)], cwd=cwd, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                time.sleep(0.05)
                for run in {*folder.glob("*")} - before:
                    look(run)
        finally:
            process.kill()
    if process.returncode:
        raise Stopped(f"{script.name}: failed with status {process.returncode}, and the message above")
    (run,) = {*folder.glob("*")} - before
    return run


def clock(device: torch.device) -> float:
    """Return the time in seconds, after all that `device` still had to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def ms_of(contender: Callable, calls: list[tuple], device: torch.device) -> float:
    """Return the milliseconds per call, of one call with each tuple of arguments."""
    start = clock(device)
    for arguments in calls:
        contender(*arguments)
    return 1e3 * (clock(device) - start) / len(calls)


def ms_in_turns(contenders: dict[str, Callable], turns: Iterable[list], device: torch.device) -> dict[str, list]:
    """Return, for each contender, the milliseconds per call in each turn.

    In a turn, a list of tuples of arguments, each contender is called with each tuple. The first call warms the caches,
    the others are timed together. Another contender goes first in each, so a slow phase of the machine slows all.
    """
    ms = {name: [] for name in contenders}
    names = list(contenders)
    for first, *others in turns:
        for name in names:
            contenders[name](*first)
            ms[name].append(ms_of(contenders[name], others, device))
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


def conditions(options: Any, device: torch.device) -> str:
    """Return how the figures of a comparison are measured, as text to print above them."""
    machine = ", ".join(f"{name} {text}" for name, text in environment(device).items())
    subject = getattr(options, "networks", None) or options.model
    return f"Measured on {machine}.\n\n`{subject}` on `{options.dataset}`"


def present(options: Any, device: torch.device, figures: dict, caption: str, report: Callable[[dict], str]) -> None:
    """Print the report of a comparison, then write it to --output, if given, with its environment and options.

    Options that name paths of this machine are left out. Raises Stopped if it cannot be written.
    """
    choices = {name: value for name, value in asdict(options).items() if name not in ("runs_dir", "output")}
    result = {"environment": environment(device), "options": choices} | figures
    show_lines(f"{conditions(options, device)}, {caption}.\n\n{report(result)}")  # its reader may have left
    if options.output:
        write_whole(options.output, json.dumps(result, indent=1).encode())
