"""What TensorBoard shows of a run: the names of its curves, and its pictures."""

import io
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms.v2.functional import to_pil_image
from torchvision.utils import make_grid

TAGS = {"d_loss": "loss/discriminator", "g_loss": "loss/generator"}
TAGS |= {"d_real": "probability/real", "d_fake": "probability/fake"}


def tag_of(name: str) -> str:
    """Return the TensorBoard tag of a result: from TAGS, `loss/cycle` for `cycle_loss`, else the name itself."""
    return TAGS.get(name) or (f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else name)


def order_event_files(folder: Path) -> None:
    """Rename a run's event files to numbers: they are read by name, and a new one's is the time."""
    for number, path in enumerate(sorted(folder.glob("events.out.tfevents.*"))):
        path.rename(path.with_name(f"events.out.tfevents.{number:010}.{path.name.split('.', 4)[4]}"))


def grid(images: Tensor, columns: int) -> Tensor:
    """Return uint8 images (N, C, H, W) as one picture (C, h, w) on the CPU; below 64 pixels at twice their size."""
    images = images.cpu()
    if images.shape[-1] < 64:
        images = images.repeat_interleave(2, -1).repeat_interleave(2, -2)
    return make_grid(images, nrow=columns)[: images.shape[1]]  # make_grid makes grey images RGB


def png(*pictures: Tensor) -> bytes:
    """Return pictures, uint8 (C, h, w), below one another as a PNG file; grey ones become RGB beside RGB."""
    channels, width = (max(picture.shape[side] for picture in pictures) for side in (0, 2))
    whole = torch.cat([F.pad(p.expand(channels, -1, -1), (0, width - p.shape[2])) for p in pictures], 1)
    file = io.BytesIO()
    to_pil_image(whole).save(file, "png", compress_level=3)
    return file.getvalue()
