"""From the command line to `main(options, run)`: options, device, where a run comes from, and errors in a line."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from common.checkpoint import load_checkpoint, run_name
from common.errors import BadInput, as_bad_input, error_in_a_line, show_lines
from common.image_files import is_among
from common.options import RunOptions, expanded, parse, parse_resumed
from common.ranks import connect
from common.run import Run

PATHS = ("runs_dir", "resume", "init_from")


def launch_run(script: str, main: Callable[..., None], kind: type[RunOptions]) -> None:
    """Call `main` with the options of the command line and a run of `script`, a path; an error ends it in a line."""
    with error_in_a_line(), ExitStack() as opened:
        options, stored = parse(main, kind), None
        if options.resume:
            stored = load_checkpoint(options.resume / "checkpoint.pt", opened if connect()[0] == 0 else None)
            options = parse_resumed(main, kind, name_of(script), stored)
        options = expanded(options, *PATHS)
        paths = {name: getattr(options, name) for name in PATHS}
        # main may change the current folder.
        options = replace(options, **{name: path and path.absolute() for name, path in paths.items()})
        main(options, opened.enter_context(open_run(script, options, stored)))
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def open_run(script: str | Path, options: RunOptions, stored: dict | None = None) -> Iterator[Run]:
    """Pick the device, seed torch, and yield a run of `script`. stored: the checkpoint of the run to continue."""
    if options != expanded(options, *PATHS):
        raise BadInput("a path begins with ~, which only the command line expands; take Path.expanduser()")
    if options.resume and not stored:  # its folder would be written over
        raise BadInput(f"resume={options.resume}: only the command line continues a run, with --resume; leave it out")
    if is_among(options.runs_dir, getattr(options, "dataset", None)) and not stored:
        raise BadInput(f"--runs-dir {options.runs_dir}: is in --dataset, which would get its samples; move it")
    path, device = Path(script), pick_device(options.device)
    torch.manual_seed(options.seed)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32
        torch.cuda.set_device(device)
    with Run(path, name_of(script), options, device, describe_origin(path, device), stored) as run:
        if run.ranks.is_main and not stored:
            check_place(options.runs_dir / run.name, options.name)  # before data are read
        yield run
        if run.folder is None and run.ranks.is_main:
            show_lines("note: the run has ended without a loop over run.steps: nothing was trained")


def name_of(script: str | Path) -> str:
    """Return the name of a script, as its runs have it: that of its file, or what a session gives, as gan_v1.5."""
    return Path(script).name.removesuffix(".py")


def check_place(runs: Path, name: str | None) -> None:
    """Raise BadInput, naming the option, if `runs` cannot hold the folder of a run; it makes one, and removes it."""
    there = next(folder for folder in (runs, *runs.parents) if os.path.lexists(folder))
    for option, each in ((f"--runs-dir: {runs} cannot hold", None), (f"--name={name}: cannot be in the name of", name)):
        with as_bad_input(f"{option} a folder; choose another", (OSError, UnicodeError)):
            folder = there / run_name(each)
            str(runs / folder.name).encode()  # TensorBoard writes to no other path
            folder.mkdir()
            folder.rmdir()


def pick_device(name: str | None) -> torch.device:
    """Return the device `name`, by default CUDA where it is available; raises BadInput if this machine lacks it."""
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ:  # under torchrun, each process has its own
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    hint = f"--device {name}: cannot be used on this machine; --device cpu can"
    with as_bad_input(hint, Exception):  # each backend raises errors of its own
        probe = torch.zeros(1, device=name)
        probe.cpu()  # raises for `meta`, which holds no numbers
    return probe.device


def describe_origin(script: Path, device: torch.device) -> dict[str, str]:
    """Return where a run comes from: command line, with the script's folder by name, commit, versions and device."""
    path, commit = script.resolve(), "none"
    with suppress(OSError, subprocess.CalledProcessError):  # no git, or no repository
        where = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}  # of another repository, in a hook of that
        environment = {name: value for name, value in os.environ.items() if name not in where}
        ask = partial(subprocess.run, cwd=path.parent, env=environment, capture_output=True, text=True, check=True)
        commit = ask(["git", "describe", "--always", "--dirty", "--abbrev=12"]).stdout.strip()
        tracked = ask(["git", "ls-files", path.name]).stdout
        commit += "" if tracked or commit.endswith("-dirty") else "-dirty"  # the script is in no commit
    count = os.environ.get("LOCAL_WORLD_SIZE")
    nodes = [f"--nnodes={number}"] if (number := os.environ.get("GROUP_WORLD_SIZE", "1")) != "1" else []
    launcher = ["torchrun", *nodes, f"--nproc-per-node={count}"] if count else ["python"]
    versions = f"torch {torch.__version__}, Python {sys.version.split()[0]}"
    command = shlex.join([*launcher, str(Path(*path.parts[-2:])), *sys.argv[1:]])
    if not path.is_file():  # a name that a session gives; what lies in its folder may be another repository
        command, commit = "a session", "none"
    return {"command": command, "commit": commit, "versions": versions, "device": str(device)}
