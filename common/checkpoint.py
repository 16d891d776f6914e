"""The files of a run: its folder and the lock on it, files written whole, checkpoints, which are not trusted."""

import io
import os
import zipfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import nn
from torch.optim.swa_utils import AveragedModel

from common.errors import BadInput, as_bad_input


def lock(folder: Path, opened: ExitStack) -> None:
    """Lock a run's folder, if that can be, until `opened` or the process ends; raises BadInput if it is locked."""
    busy = f"{folder}: another process is training this run; wait for it, or end it first"
    with suppress(OSError), as_bad_input(busy, Timeout):  # a soft lock would outlive a killed process
        opened.enter_context(FileLock(folder / ".lock", blocking=False, fallback_to_soft=False))


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it to `path`, so that there is never a part of it; raises OSError."""
    temporary = path.with_name(f".{path.name}.unfinished")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # that of write() names no file
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def as_bytes(state: Any) -> bytes:
    """Return plain data and tensors as a file of `torch.save`."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def load_checkpoint(run: Path, opened: ExitStack | None = None) -> dict[str, Any]:
    """Return what `Run.save` wrote into `run`, a folder, which `opened` locks first, or the file; executes nothing."""
    path = run / "checkpoint.pt" if run.is_dir() else run
    if not path.is_file():
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint")
    if opened:
        lock(path.parent, opened)
    with as_bad_input(f"{path}: not a checkpoint of these scripts"), zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():  # torch.load does not look at the checksums
            raise ValueError(f"its record {damaged} is damaged; take a copy of the file, or an earlier run")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        facts = {"script": str, "step": int, "options": dict, "data_shapes": list}
        if any(type(checkpoint[name]) is not kind for name, kind in facts.items()) or checkpoint["step"] < 1:
            raise ValueError("it lacks what a run saves")
    return checkpoint


def average_of(name: str) -> str:
    """Return the name, in `state` and in checkpoints, of the average of the weights of the network called `name`."""
    return "average" if name == "generator" else f"average_{name}"


def load_initial_weights(state: dict[str, Any], run: Path) -> None:
    """Load the weights of each network in `state` from another run, averaged if it has an average."""
    checkpoint, hint = load_checkpoint(run), "take the same --model, --z-dim, --image-size and classes"
    for name, network in state.items():
        if isinstance(network, nn.Module) and not isinstance(network, AveragedModel):
            average = average_of(name)
            with as_bad_input(f"--init-from {run}: does not hold this {name}; {hint}"):
                states = checkpoint.get(average, {}).items()
                weights = {key[7:]: value for key, value in states if key.startswith("module.")}
                network.load_state_dict(weights or checkpoint[name])
            if average in state:
                state[average].module.load_state_dict(network.state_dict())
