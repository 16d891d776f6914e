"""The files of a run: its folder and the lock on it, files written whole, checkpoints, which are not trusted."""

import io
import os
import zipfile
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map_only

from common.errors import BadInput, Stopped, as_bad_input, as_stopped


def lock(folder: Path, opened: ExitStack) -> None:
    """Lock a run's folder, if that can be, until `opened` or the process ends; raises BadInput if it is locked."""
    busy = f"{folder}: another process is training this run; wait for it, or end it first"
    with suppress(OSError), as_bad_input(busy, Timeout):  # a soft lock would outlive a killed process
        opened.enter_context(FileLock(folder / ".lock", blocking=False, fallback_to_soft=False))


def check_lock(file: IO) -> None:
    """Raise Stopped if the file `.lock`, which is open, was deleted or replaced by another of its name."""
    if not (Path(file.name).exists() and os.path.samestat(os.fstat(file.fileno()), Path(file.name).stat())):
        raise Stopped(f"{file.name}: was deleted, so another process may train this run: nothing is written")


def run_name(name: str | None) -> str:
    """Return the name of a new run's folder: the time, and `name`."""
    return f"{datetime.now():%Y%m%d-%H%M%S-%f}" + (f"-{name}" if name else "")


def make_folder(runs: Path, name: str | None, opened: ExitStack) -> Path:
    """Return a new folder in `runs`, of the time and the name, which `opened` locks; raises BadInput if it cannot."""
    folder = runs / run_name(name)
    with as_bad_input(f"--runs-dir: {folder} cannot be made; choose another", OSError):
        folder.mkdir(parents=True)
    lock(folder, opened)
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it to `path`, so that there is never a part of it; raises Stopped."""
    temporary = path.with_name(f".{path.name[:50]}.unfinished")  # a name has 255 bytes at most
    with as_stopped(path):
        path.parent.mkdir(exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def as_bytes(content: Any, hint: str = "what the run holds cannot be saved") -> bytes:
    """Return plain data and tensors as a file that is read with `weights_only=True`; raises BadInput, with the hint."""
    file = io.BytesIO()
    with as_bad_input(hint, Exception):  # errors are of many types
        torch.save(content, file)
        torch.load(io.BytesIO(file.getbuffer()), "meta", weights_only=True)  # without memory for its tensors
    return file.getvalue()


def check_state(state: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raise BadInput for `facts`, or a part of `state`, that no checkpoint can hold, or whose name is taken."""
    if taken := sorted(facts["options"].keys() & (facts.keys() - {"device"})):
        raise BadInput(f"options: a checkpoint has a {taken[0]} of its own; give yours another name")
    as_bytes(facts, "options: cannot be in a checkpoint; take numbers, text, None and tuples of these")
    for name, owner in state.items():
        with as_bad_input(hint := f"state {name!r}: cannot be in a checkpoint", Exception):
            as_bytes(owner.state_dict(), hint)
            if not hasattr(owner, "load_state_dict"):
                raise TypeError("it has no load_state_dict()")
            if name in {*facts, "step", "sums", "averages", "layers"}:
                raise ValueError("the name is taken; choose another")


def has_optimizer(state: dict[str, Any], optimizer: Optimizer) -> bool:
    """Return whether the state has an optimizer, or one around it whose `state_dict` has the tensors of its state."""
    around = [owner for owner in state.values() if getattr(owner, "param_groups", None) is optimizer.param_groups]
    tensors = (id(x) for each in optimizer.state.values() for x in tree_leaves(each) if isinstance(x, Tensor))
    stored = (id(x) for owner in around for x in tree_leaves(owner.state_dict()))
    return optimizer in around or (bool(around) and {*tensors} <= {*stored})


def require_stored(state: dict[str, Any], optimizer: Optimizer) -> None:
    """Raise BadInput if `state` lacks an optimizer that steps in the loop, or the network of a weight that it holds."""
    stored = {p for owner in state.values() if isinstance(owner, nn.Module) for p in owner.parameters()}
    lost = [] if has_optimizer(state, optimizer) else [type(optimizer).__name__]
    lost += [f"weight {[*p.shape]}" for group in optimizer.param_groups for p in group["params"] if p not in stored]
    if lost:
        raise BadInput(f"the `state` of run.steps lacks what the loop trains: {lost[0]}; add it, or its network")


def changing_parts(state: dict[str, Any]) -> list[tuple[object, str]]:
    """Return the tensors of the networks in a state, and the schedules, each with its attribute that counts changes."""
    networks = [owner for owner in state.values() if isinstance(owner, nn.Module)]
    tensors = [x for network in networks for x in (*network.parameters(), *network.buffers())]
    turns = [(owner, "last_epoch") for owner in state.values() if hasattr(owner, "last_epoch")]
    return [(x, "_version") for x in tensors if not x.is_inference()] + turns


def finite_states(state: dict[str, Any], step: int) -> dict[str, Any]:
    """Return the `state_dict` of each part, without numbers of NumPy; raises Stopped for NaN, and infinite weights."""
    entries = {}
    for name, owner in state.items():
        entry, is_network = owner.state_dict(), isinstance(owner, nn.Module)
        entries[name] = entry if is_network else tree_map_only(np.generic, np.generic.item, entry)  # as a rate
        weights = dict(owner.named_parameters()) if is_network else ()
        pairs = [(keystr(path), x) for path, x in tree_flatten_with_path(entry)[0] if isinstance(x, Tensor)]
        for path, values in pairs:  # a mask, or the least loss so far, may be infinite
            if (~values.isfinite() if path[2:-2] in weights or isinstance(owner, Optimizer) else values.isnan()).any():
                raise Stopped(f"step {step}: {name}{path} is not finite: no checkpoint is written; try a lower --lr")
    return entries


def load_checkpoint(run: Path, opened: ExitStack | None = None) -> dict[str, Any]:
    """Return what a run has written into `run`, a folder, which `opened` locks first, or the file; executes nothing."""
    path = run / "checkpoint.pt" if run.is_dir() else run
    if not path.is_file():
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint")
    if opened:
        lock(path.parent, opened)
    with as_bad_input(f"{path}: cannot be read as a checkpoint of these scripts", Exception):  # damage makes many types
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # torch.load does not look at the checksums
                raise ValueError(f"its record {damaged} is damaged; take a copy of the file, or an earlier run")
        checkpoint = {"settings": {}} | torch.load(path, map_location="cpu", weights_only=True)  # older runs have none
        facts = {"script": str, "step": int, "options": dict, "data_shapes": list, "settings": dict}
        if any(type(checkpoint[name]) is not kind for name, kind in facts.items()) or checkpoint["step"] < 1:
            raise ValueError("it lacks what a run saves")
    return checkpoint


def load_state(state: dict[str, Any], stored: dict[str, Any], facts: dict[str, Any], run: Path) -> dict[str, tuple]:
    """Load the state of a run to resume; return its sums of the curves. Raises BadInput if it or data are others."""
    for name in ("data_shapes", "data_types", "classes", "label_checksums"):
        if (now := facts[name]) != (before := stored.get(name, now)):  # older runs lack some
            raise BadInput(f"--resume {run}: the {name} are {now}, but were {before}; use the same data")
    parts = {name for name, value in stored.items() if isinstance(value, dict)} - {*facts, "sums", "averages", "layers"}
    if lost := sorted((parts | stored["settings"].keys()) - state.keys()):
        raise BadInput(f"--resume {run}: its checkpoint also has {', '.join(lost)}, which `state` lacks; add it")
    for name, owner in state.items():
        with as_bad_input(f"{run}: does not hold this {name}; networks or options may have changed since", Exception):
            groups = [dict(group) for group in getattr(owner, "param_groups", [])]
            owner.load_state_dict(stored[name])
            for old, new in zip(groups, getattr(owner, "param_groups", []), strict=True):
                values = {key: (value, new.get(key)) for key, value in old.items() if value is not None}
                kinds = {k: [float if type(x) in (int, Tensor) else type(x) for x in xs] for k, xs in values.items()}
                if other := sorted(key for key, (of_old, of_new) in kinds.items() if of_old is not of_new):
                    raise TypeError(f"its setting {other[0]!r} is another, or of another type")
            for key, now in facts["settings"][name].items():
                if now != (before := stored["settings"].get(name, {}).get(key, now)):
                    raise ValueError(f"its {key} is {now}, but was {before}; or take --init-from")
    with as_bad_input(f"{run}: its sums of the curves are damaged", Exception):
        return {name: (float(total), float(count)) for name, (total, count) in stored["sums"].items()}


def settings_in(state: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return of each part of a state, by its name, the settings of an optimizer as text, by name and group, if any."""
    settings, of_device = {}, ("params", "param_names", "foreach", "fused", "capturable")
    for name, owner in state.items():
        groups = enumerate(getattr(owner, "param_groups", []))  # also of what is around an optimizer
        items = [(f"{k} of group {i}", x) for i, group in groups for k, x in group.items() if k not in of_device]
        settings[name] = {key: str(x.tolist() if isinstance(x, Tensor) else x) for key, x in items}  # in all digits
    return settings


def averages_in(state: dict[str, Any], fewest_updates: int = 0) -> dict[str, str]:
    """Return by network the name of its average: `average_x` is of `x`, any other of `generator`; of enough updates."""
    names = [n for n, x in state.items() if isinstance(x, AveragedModel) and x.n_averaged >= fewest_updates]
    return {name.removeprefix("average_") if name.startswith("average_") else "generator": name for name in names}


def load_initial_weights(state: dict[str, Any], checkpoint: dict[str, Any], run: Path) -> None:
    """Load the weights of each network in `state` from the checkpoint of `run`, averaged if it has an average."""
    own, of_it = averages_in(state), checkpoint | checkpoint["options"]
    names = ("script", "model", "z_dim", "width", "blocks", "data_shapes", "classes")  # what its networks depend on
    had = ", ".join(f"{name} {of_it[name]}" for name in names if name in of_it)
    for name, network in state.items():
        if isinstance(network, nn.Module) and not isinstance(network, AveragedModel):
            hint = f"--init-from {run}: does not hold this {name}; its networks are those of {had}; take the same"
            with as_bad_input(hint, Exception):  # of any type, in a damaged file
                average = checkpoint["averages"].get(name)
                weights = checkpoint[average or name]
                if average or any("_orig_mod." in key for key in weights):  # of AveragedModel, of torch.compile()
                    prefix, names = "module." if average else "", [key for key in weights if key != "n_averaged"]
                    weights = {key.removeprefix(prefix).replace("_orig_mod.", ""): weights[key] for key in names}
                getattr(network, "_orig_mod", network).load_state_dict(weights)
            if name in own:
                state[own[name]].module.load_state_dict(network.state_dict())
