"""Reading a checkpoint that nobody vouches for: nothing in it is executed, and it is checked before it is used."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from common.command_line import BadInput, parse

Options = TypeVar("Options")


def load_checkpoint(run: Path) -> dict:
    """Return what `TrainingRun.save` wrote into the folder `run`, on the CPU; `run` may also be the file itself.

    `script` is a name, `step` a number, `options` a dict and `data_shapes` a list of shapes (N, C, H, W); what the rest
    holds is still to be checked: `stored_options`, `mismatch`. Nothing in the file is executed. Raises BadInput where
    there is no checkpoint or it cannot be read.
    """
    path = run / "checkpoint.pt" if os.path.isdir(run) else run  # noqa: PTH112 (Path.is_dir raises for long names)
    if not os.path.isfile(path):  # noqa: PTH113
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint")
    with refusing(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's doubts about a file that is refused anyway
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if not (
            isinstance(checkpoint, dict)
            and checkpoint["script"].isidentifier()
            and type(checkpoint["step"]) is int
            and isinstance(checkpoint["options"], dict)
            and (shapes := checkpoint["data_shapes"])
            and all(len(shape) == 4 and all(type(n) is int and n > 0 for n in shape) for shape in shapes)
        ):
            raise ValueError
    return checkpoint


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Raise whatever the block raises as BadInput that names the checkpoint `path`: a broken one can fail anywhere."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except Exception as error:
        raise BadInput(f"{path}: not a checkpoint of these scripts ({type(error).__name__})") from error


def stored_options(checkpoint: dict, run: Path, kind: type[Options]) -> Options:
    """Return the options in a checkpoint, read as the command line would be: no value has a wrong type.

    checkpoint: from `load_checkpoint(run)`. Raises BadInput where its options are not those of `kind` but `resume`.
    """
    if checkpoint["options"].keys() != {field.name for field in fields(kind)} - {"resume"}:
        raise BadInput(
            f"{run}: made by {checkpoint['script']}.py with other options than this script has; "
            "take the script, and the version of it, that made the run"
        )
    arguments = []
    for name, value in checkpoint["options"].items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            arguments += [flag] * value
        elif isinstance(value, list | tuple):
            arguments += [flag, *(str(number) for number in value if isinstance(number, int | float))]
        else:
            arguments += [f"{flag}={value}"]
    with refusing(run / "checkpoint.pt"):
        return parse(kind, "", arguments)


class Stateful(Protocol):
    """A network, an optimizer, or anything else whose state a checkpoint can hold: plain data and tensors."""

    def state_dict(self) -> dict:
        """Return the state."""

    def load_state_dict(self, state: dict) -> object:
        """Take up the state."""


def mismatch(part: Stateful, state: object) -> str | None:
    """Return what is wrong with `state` for this part of a run, in a few words, or None; changes neither.

    Names, shapes and dtypes must be those of a network or optimizer, names and types those of a schedule of the
    learning rate. For anything else, `load_state_dict` has to see to it.
    """
    if not isinstance(state, dict):
        return "no state of one"
    if isinstance(part, nn.Module):
        return difference(part.state_dict(), state)
    if isinstance(part, Optimizer):
        groups = part.state_dict()["param_groups"]
        if skeleton(state.get("param_groups")) != skeleton(groups) or not isinstance(state.get("state"), dict):
            return "other groups of parameters"
        parameters = [parameter for group in part.param_groups for parameter in group["params"]]
        kept = kept_for_one_number(part)
        expected = {
            (index, name): torch.empty_like(parameter if value.ndim else value, device="meta")
            for index, parameter in enumerate(parameters)
            for name, value in kept.items()
        }
        found = {(index, name): value for index, of in state["state"].items() for name, value in of.items()}
        return difference(expected, found)
    if isinstance(part, LRScheduler) and skeleton(state) != skeleton(part.state_dict()):
        return "other settings"
    return None


def skeleton(settings: object) -> object:
    """Return nested settings with the type of each in place of its value; an optimizer's `params` stay."""
    if isinstance(settings, dict):
        return {name: value if name == "params" else skeleton(value) for name, value in settings.items()}
    return [skeleton(value) for value in settings] if isinstance(settings, list | tuple) else type(settings)


def kept_for_one_number(optimizer: Optimizer) -> dict[str, Tensor]:
    """Return what an optimizer of this kind keeps for a parameter of shape (1,), once it has stepped."""
    (like,) = optimizer.param_groups[0]["params"][:1]
    number = torch.zeros(1, dtype=like.dtype, device=like.device, requires_grad=True)
    twin = type(optimizer)([number])
    twin.param_groups[0] |= {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    number.grad = torch.zeros_like(number)
    twin.step()
    return twin.state[number]


def difference(expected: dict[object, Tensor], found: dict) -> str | None:
    """Return the first name, shape or dtype in which `found` differs from the tensors `expected`, or None."""
    if expected.keys() != found.keys():
        return f"{min(map(str, expected.keys() ^ found.keys()))} on one side only"
    for name, tensor in expected.items():
        if not isinstance(found[name], Tensor) or found[name].layout != torch.strided:
            return f"{name} is no tensor"
        wrong, right = (f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}" for t in (found[name], tensor))
        if wrong != right:  # as in `float32 (64, 1)`
            return f"{name} is {wrong}, not {right}"
    return None


def load_network(make: Callable[[], nn.Module], state: object) -> nn.Module:
    """Return the network that `make` makes, with the weights in `state`; raises BadInput where these do not fit it.

    The network is made without memory, so that options which ask for too much of it do no harm.
    """
    with torch.device("meta"):
        network = make()
    if wrong := mismatch(network, state):
        raise BadInput(f"the checkpoint does not hold this network: {wrong}")
    network.load_state_dict(state, assign=True)
    return network


def all_finite(state: object) -> bool:
    """Return whether every number in the tensors of a state is finite."""
    if isinstance(state, Tensor):
        return bool(state.isfinite().all())
    if isinstance(state, dict | list | tuple):
        return all(map(all_finite, state.values() if isinstance(state, dict) else state))
    return True
