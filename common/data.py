"""Images for training: uint8 in the device's memory, or streamed from a big folder; a batch is converted to floats.

The order of the batches is a function of (seed, step) alone, so a resumed run sees the same images at the same steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from common.errors import BadInput

ASSETS = Path(__file__).parent / "assets"
DOWNLOADED = ("mnist", "fashion-mnist", "cifar10")
DATASETS = ("mnist5k", "stacked-digits", *DOWNLOADED)  # by name; any other value is the path of a folder
FOLDER_IMAGE_SIZE = 64
STACKED = 60_000  # images of stacked-digits


@dataclass(frozen=True)
class LabeledImages:
    """Images, each with its class: one data set, whose batches are pairs.

    images: what `load_images` returns, N of them. labels: int64 (N,), indices into `classes`, the names.
    """

    images: Any
    labels: Tensor
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> torch.Size:
        """The shape of the images, (N, C, H, W)."""
        return self.images.shape

    def to(self, device: torch.device) -> "LabeledImages":
        """Return the data set on `device`."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))


def load_mnist5k(held_out: bool = False) -> tuple[Tensor, Tensor]:
    """Return images, uint8 (N, 1, 28, 28), and labels, int64 (N,), of the digits that ship with the repository.

    N is 4,000 for training, 400 of each digit. With `held_out` it is the other 1,000, on which no script trains.
    """
    sheet = torch.from_numpy(np.array(Image.open(ASSETS / "mnist5k.png")))  # 50 x 100 tiles, five rows to a digit
    tiles = sheet.view(50, 28, 100, 28).transpose(1, 2)
    labels = torch.arange(10).repeat_interleave(5)[:, None].expand(50, 100)
    columns = slice(80, 100) if held_out else slice(0, 80)
    return tiles[:, columns].reshape(-1, 1, 28, 28), labels[:, columns].reshape(-1)


def load_stacked_digits(count: int = STACKED, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return images of three digits each, in red, green and blue, uint8 (count, 3, 28, 28), and the labels (count, 3).

    The digits are those of `load_mnist5k`, drawn independently: an image is a function of seed and index, and the 1,000
    combinations are equally probable. Srivastava et al., "VEEGAN" (2017).
    """
    digits, labels = load_mnist5k()
    drawn = torch.from_numpy(np.random.default_rng(seed).integers(len(digits), size=(count, 3)))
    return digits[:, 0][drawn], labels[drawn]


def to_float(images: Tensor) -> Tensor:
    """Return uint8 images as floats in [-1, 1]."""
    return images.float() / 127.5 - 1


def to_uint8(images: Tensor) -> Tensor:
    """Return float images in [-1, 1] as uint8, rounded; values outside are clipped."""
    return images.add(1).mul(127.5).round().clamp(0, 255).byte()


def check_images(images: Any) -> None:
    """Raise BadInput for what is neither uint8 (N, C, H, W), nor a stream of such images, nor LabeledImages."""
    images = images.images if isinstance(images, LabeledImages) else images
    if isinstance(images, Tensor) and (images.dtype != torch.uint8 or images.ndim != 4):
        raise BadInput(f"a data set is uint8 images (N, C, H, W), not {images.dtype} {tuple(images.shape)}")


def batches(images: Any, batch_size: int, seed: int, first_step: int = 0, rows: slice = slice(None)) -> Iterator[Any]:
    """Yield each step's batch, as floats in [-1, 1] on the images' device, without end.

    images: uint8 (N, C, H, W), or a stream, which gives the same batches. Of LabeledImages a batch is a pair: floats,
    labels. rows: the slice of every batch to yield; no other image is read. Raises BadInput for what cannot be read.
    """
    order = (indices[rows] for indices in batch_order(len(images), batch_size, seed, first_step))
    if isinstance(images, LabeledImages):  # both parts in the same order, a function of seed and step
        reals = batches(images.images, batch_size, seed, first_step, rows)
        yield from zip(reals, selected(images.labels, order), strict=True)
        return
    for batch in selected(images, order) if isinstance(images, Tensor) else images.batches(order):
        yield to_float(batch)


def selected(values: Tensor, order: Iterator[Tensor]) -> Iterator[Tensor]:
    """Yield the rows of `values` (N, ...) at each tensor of indices in `order`, which are on the CPU."""
    return (values.index_select(0, indices.to(values.device, non_blocking=True)) for indices in order)


def batch_order(count: int, batch_size: int, seed: int, first_step: int = 0) -> Iterator[Tensor]:
    """Yield the indices of each step's batch from `first_step` on, without end: int64 (batch_size,) in [0, count).

    Every epoch has its own permutation. A batch may cross from one epoch into the next, so every batch is full.
    """

    def shuffled(epoch: int) -> Tensor:
        return torch.randperm(count, generator=torch.Generator().manual_seed(seed_for(seed, epoch)))

    epoch, used = divmod(first_step * batch_size, count)
    order = shuffled(epoch)[used:]
    while True:
        while len(order) < batch_size:
            epoch += 1
            order = torch.cat([order, shuffled(epoch)])
        yield order[:batch_size]
        order = order[batch_size:]


def seed_for(*key: int) -> int:
    """Return a seed for torch that is a function of `key`; keys that differ by little give unrelated seeds.

    torch's CPU generator keeps 32 bits of a seed. With seed + step, run 1 at step 0 would repeat run 0 at step 1.
    """
    return int(np.random.SeedSequence(key).generate_state(1)[0])
