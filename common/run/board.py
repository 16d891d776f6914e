"""What TensorBoard shows of a run: the results of its steps as curves, and pictures."""

import re
from collections.abc import Iterable, Mapping
from numbers import Real

import torch
from tensorboard.compat.proto.summary_pb2 import Summary
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from common.data import to_uint8
from common.errors import Stopped
from common.run.pictures import grid, png

TAGS = {
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
}


def tag_of(name: str) -> str:
    """Return the TensorBoard tag of a result: from TAGS, `loss/cycle` for `cycle_loss`, else the name itself."""
    return TAGS.get(name) or (f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else name)


def charts(tags: Iterable[str]) -> dict[str, dict[str, list]]:
    """Return the layout of TensorBoard's custom scalars: one chart for all tags that differ only after the last `/`."""
    groups = dict.fromkeys(tag.rpartition("/")[0] for tag in tags if "/" in tag)
    return {"training": {group: ["Multiline", [f"^{re.escape(group)}/[^/]+$"]] for group in groups}}


def check_numbers_by_name(step: int, values: object) -> None:
    """Raise Stopped unless `values` maps names to real numbers, or to tensors of any shape that hold one such number.

    Reads only types and shapes, so it does not wait for the device.
    """
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise Stopped(f"step {step}: the step returned a {type(values).__name__}; return a dict of names and numbers")
    for name, value in values.items():
        if isinstance(value, Tensor):
            one_number, what = value.numel() == 1 and not value.is_complex(), f"a tensor of shape {tuple(value.shape)}"
        else:
            one_number, what = isinstance(value, Real), f"a {type(value).__name__}"
        if not one_number:
            raise Stopped(f"step {step}: the step returned {what} as {name!r}; a curve takes one number")


def stacked(values: Mapping[str, Tensor | float], device: torch.device) -> Tensor:
    """Return numbers that have passed `check_numbers_by_name` as one tensor (len(values),) of the default dtype."""
    numbers = [value if isinstance(value, Tensor) else torch.tensor(float(value)) for value in values.values()]
    return torch.stack([number.detach().reshape(()).to(device, torch.get_default_dtype()) for number in numbers])


def add_picture(board: SummaryWriter, name: str, images: Tensor, step: int, columns: int) -> None:
    """Show images (N, C, H, W) in [-1, 1] as one picture; takes half the time of TensorBoard's `add_image`."""
    picture = grid(to_uint8(images), columns)
    colours, height, width = picture.shape
    image = Summary.Image(colorspace=colours, height=height, width=width, encoded_image_string=png(picture))
    board.file_writer.add_summary(Summary(value=[Summary.Value(tag=name, image=image)]), step)
