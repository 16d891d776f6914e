"""The files of a run: its folder, files written whole, checkpoints, which are not trusted."""

import io
import os
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, AdamW
from torch.optim.swa_utils import AveragedModel

from common.errors import BadInput, as_bad_input


def make_run_folder(parent: Path, name: str | None) -> Path:
    """Make and return a folder that is named after the time, to the microsecond, and `name`."""
    folder = parent / (f"{datetime.now():%Y%m%d-%H%M%S-%f}" + (f"-{name}" if name else ""))
    with as_bad_input(f"--runs-dir: {folder} cannot be made; choose another", (OSError, UnicodeError)):
        str(folder).encode()  # TensorBoard writes to no other path
        folder.mkdir(parents=True)
    return folder


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


def load_checkpoint(run: Path) -> dict[str, Any]:
    """Return what `Run.save` wrote into `run`, a folder, or the file; executes nothing."""
    path = run / "checkpoint.pt" if run.is_dir() else run
    if not path.is_file():
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint")
    with as_bad_input(f"{path}: not a checkpoint of these scripts"), zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():  # torch.load does not look at the checksums
            raise ValueError(f"its record {damaged} is damaged; take a copy of the file, or an earlier run")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        facts = {"script": str, "step": int, "options": dict, "data_shapes": list}
        if any(type(checkpoint[name]) is not kind for name, kind in facts.items()) or checkpoint["step"] < 1:
            raise ValueError("it lacks what a run saves")
    return checkpoint


def state_of(owner: Any) -> Any:
    """Return the state of what has `state_dict` or, as random number generators do, `get_state`."""
    return owner.state_dict() if hasattr(owner, "state_dict") else owner.get_state()


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


def load_state(owner: Any, state: Any) -> None:
    """Load what `state_of` returned; raises an error of any type if it does not fit."""
    if hasattr(owner, "load_state_dict"):
        owner.load_state_dict(state)
    else:
        owner.set_state(state)
    # Fused Adam takes the parameter's shape and memory layout for granted.
    for parameter, entry in owner.state.items() if isinstance(owner, Adam | AdamW) else ():
        for name in {"step", "exp_avg", "exp_avg_sq", *entry}:
            own = entry[name].new_empty(()) if name == "step" else torch.empty_like(parameter)
            entry[name] = own.copy_(entry[name].reshape(own.shape))
