"""Reading a checkpoint from an untrusted source: nothing in it is executed, and it is checked before it is used."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from common.errors import BadInput
from common.run.option_values import flag, options_from_store

Options = TypeVar("Options")


def load_checkpoint(run: Path) -> dict:
    """Return what `TrainingRun.save` wrote into the folder `run`, on the CPU; `run` may also be the file itself.

    `script` is a str, `step` an int, `options` a dict and `data_shapes` a list of shapes (N, C, H, W). The rest is
    still to be checked, by `stored_options` and `mismatch`. Raises BadInput for what is no checkpoint.
    """
    path = run / "checkpoint.pt" if run.is_dir() else run
    if not path.is_file():
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint")
    with refusing(path):
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch.load does not look at the checksums
        if damaged:
            raise BadInput(f"its record {damaged} is damaged; take a copy of the file, or an earlier run")
        if not (
            isinstance(checkpoint, dict)
            and isinstance(checkpoint["script"], str)
            and type(checkpoint["step"]) is int
            and isinstance(checkpoint["options"], dict)
            and (shapes := checkpoint["data_shapes"])
            and all(len(shape) == 4 and all(type(n) is int and n > 0 for n in shape) for shape in shapes)
        ):
            raise ValueError
    if checkpoint["options"].get("model") == "dcgan":
        checkpoint["options"]["model"] = "conv"  # its name since then
    return checkpoint


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Raise any error of the block as BadInput that names the checkpoint `path`: a broken file can fail anywhere."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except Exception as error:
        raise BadInput(f"{path}: not a checkpoint of these scripts ({type(error).__name__})") from error


def stored_options(checkpoint: dict, run: Path, kind: type[Options]) -> Options:
    """Return the options in a checkpoint of `run`, each checked against its annotation in `kind`.

    An option that `kind` did not have when the run was made gets its default. Raises BadInput, naming the option, if a
    value is not of its type or out of its range, or if `kind` has no such option: the run would continue without it.
    """
    for name in checkpoint["options"].keys() - {field.name for field in fields(kind)}:
        message = f"made by {checkpoint['script']}.py with {flag(str(name))}, which this script does not have"
        raise BadInput(f"{run}: {message}; take the version that made it")
    with refusing(run / "checkpoint.pt"):
        return options_from_store(kind, checkpoint["options"])


def mismatch(part: Any, state: object) -> str | None:
    """Return why `part` cannot load `state`, in a few words, or None if it can; changes neither.

    Names, shapes and dtypes must be those of the network or optimizer; other objects check the state themselves, in
    `load_state_dict`. A state of another structure may also raise, so call this within `refusing`.
    """
    if not isinstance(state, dict):
        return "its state is not a dict"
    if isinstance(part, Optimizer):
        return optimizer_mismatch(part, state)
    return difference(part.state_dict(), state) if isinstance(part, nn.Module) else None


def optimizer_mismatch(optimizer: Optimizer, state: dict) -> str | None:
    """Return why `optimizer` cannot load `state`, in a few words, or None.

    The tensors of Adam and AdamW must have the names, shapes and dtypes that a step gives them, because their fused
    forms do not check; those of other optimizers PyTorch checks in their first step.
    """
    own = optimizer.state_dict()["param_groups"]
    if [group["params"] for group in state["param_groups"]] != [group["params"] for group in own]:
        return "other groups of parameters"
    for settings, loaded in zip(own, state["param_groups"], strict=True):
        for name, value in numbers_of(settings).items():
            before, after = (torch.tensor(number, dtype=torch.float64) for number in (value, loaded[name]))
            if before.shape != after.shape or not (after.isfinite() & (after >= before.clamp(max=0))).all():
                return f"its setting {name} is {loaded[name]}"
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, entry in state["state"].items():
        expected = entry
        if type(optimizer) in (torch.optim.Adam, torch.optim.AdamW):
            names = {"exp_avg", "exp_avg_sq", *entry} - {"step"}
            expected = {"step": torch.tensor(0.0)} | dict.fromkeys(names, parameters[number])
        if wrong := difference(expected, entry):
            return f"parameter {number}: {wrong}"
        if entry.get("step", 0) < 0:
            return f"parameter {number}: a negative step"
    return None


def numbers_of(settings: dict) -> dict:
    """Return those settings of a group of parameters that a schedule may change: numbers, and tuples of them."""

    def is_number(value: object) -> bool:
        return type(value) in (int, float) or (isinstance(value, tuple) and all(map(is_number, value)))

    return {name: value for name, value in settings.items() if is_number(value)}


def load_state(part: Any, state: dict) -> None:
    """Load `state`, which has passed `mismatch`; of an optimizer's settings the numbers alone."""
    if isinstance(part, Optimizer):
        groups = [
            own | {name: loaded[name] for name in numbers_of(own)}
            for own, loaded in zip(part.state_dict()["param_groups"], state["param_groups"], strict=True)
        ]
        state = state | {"param_groups": groups}
    part.load_state_dict(state)


def difference(expected: dict[str, object], loaded: dict[str, object]) -> str | None:
    """Return the first name, shape or dtype in which the tensors `loaded` differ from those `expected`, or None."""
    if expected.keys() != loaded.keys():
        return f"{min(map(str, expected.keys() ^ loaded.keys()))} on one side only"
    for name, tensor in expected.items():
        if not isinstance(tensor, Tensor):
            continue
        other = loaded[name]
        if not isinstance(other, Tensor) or other.layout != torch.strided:
            return f"{name} is not a tensor"
        if any(stride == 0 and n > 1 for stride, n in zip(other.stride(), other.shape, strict=True)):
            return f"{name} has one number for several places"  # an optimizer in fused form would write beyond it
        wrong, right = (f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}" for t in (other, tensor))
        if wrong != right:  # as in `float32 (64, 1)`
            return f"{name} is {wrong}, not {right}"
    return None


def all_finite(state: object) -> bool:
    """Return whether every number in the tensors of a state is finite."""
    if isinstance(state, Tensor):
        return bool(state.isfinite().all())
    if isinstance(state, dict | list | tuple):
        return all(map(all_finite, state.values() if isinstance(state, dict) else state))
    return True
