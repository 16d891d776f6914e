"""What a step returns, as the numbers that TensorBoard's curves are made of."""

import re
from collections.abc import Iterable, Mapping
from numbers import Real

import torch
from torch import Tensor

from common.run.command_line import Stopped

TAGS = {
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
}


def tag_of(name: str) -> str:
    """Return TensorBoard's tag for a result: that in TAGS, `loss/cycle` for `cycle_loss`, else the name itself."""
    return TAGS.get(name) or (f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else name)


def charts(tags: Iterable[str]) -> dict[str, dict[str, list]]:
    """Return the layout of TensorBoard's custom scalars: one chart for all tags with the same text before the `/`."""
    groups = dict.fromkeys(tag.partition("/")[0] for tag in tags if "/" in tag)
    return {"training": {group: ["Multiline", [f"^{re.escape(group)}/"]] for group in groups}}


def check_numbers_by_name(step: int, values: object) -> None:
    """Raise Stopped unless `values` maps names to real numbers, or to tensors of any shape that hold one such number.

    Looks at types and shapes alone, so that it does not wait for the device.
    """
    if not isinstance(values, Mapping):
        raise Stopped(f"step {step}: the step returned {kind(values)}; return a dict of names and numbers")
    for name, value in values.items():
        if not isinstance(name, str):
            raise Stopped(f"step {step}: the step returned a number under {name!r}; name it with a string")
        if isinstance(value, Tensor):
            if value.numel() == 1 and not value.is_complex():
                continue
        elif isinstance(value, Real):
            continue
        raise Stopped(f"step {step}: the step returned {kind(value)} as {name!r}; a curve takes one number")


def kind(value: object) -> str:
    """Return what `value` is, in a few words, without its content."""
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    return f"a value of type {type(value).__name__}"


def stacked(values: Mapping[str, Tensor | float], device: torch.device) -> Tensor:
    """Return numbers that have passed `check_numbers_by_name` as one tensor (len(values),) of the default dtype."""
    dtype = torch.get_default_dtype()
    return torch.stack(
        [
            value.detach().reshape(()).to(device, dtype)
            if isinstance(value, Tensor)
            else torch.tensor(float(value), device=device, dtype=dtype)
            for value in values.values()
        ]
    )
