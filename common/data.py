"""Images for training, by the name of a data set or the path of a folder, and their batches, by (seed, step) alone."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from PIL import Image
from torch import Tensor
from torchvision.datasets import CIFAR10, MNIST, FashionMNIST
from torchvision.transforms.v2.functional import resize

from common.errors import ROOT, BadInput, as_bad_input, show_lines
from common.image_files import Fit, image_paths, load_files

ASSETS = Path(__file__).parent / "assets"
DOWNLOADS = ROOT / "data"
TORCHVISION = {"mnist": MNIST, "fashion-mnist": FashionMNIST, "cifar10": CIFAR10}
DATASETS = ("mnist5k", *TORCHVISION)  # by name; any other value is the path of a folder
ON_DEVICE = 2**32  # bytes of images that are copied to the device; of more, each batch is


def load_images(dataset: str, image_size: int | None = None, fit: Fit = "crop", hold_out: bool = True) -> Tensor:
    """Return the training images of `dataset`, in DATASETS or a folder, square, uint8 (N, C, H, W) with C 1 or 3.

    image_size: pixels a side; None keeps a data set's own size, and takes 64 for a folder.
    hold_out: whether to leave out what `training_paths` leaves out of a folder.
    """
    if dataset in DATASETS:
        return load_dataset(dataset, image_size)[0]
    return load_files(image_paths(dataset, hold_out), image_size or 64, fit=fit)


def load_dataset(dataset: str, image_size: int | None = None, held_out: bool = False) -> tuple:
    """Return uint8 images (N, C, S, S), labels (N,) and classes, of DATASETS; raises BadInput for none or damaged."""
    hint = f"cannot be downloaded into {DOWNLOADS}, or is damaged there: delete it; mnist5k ships with the repository"
    if dataset == "mnist5k":  # 50 x 100 tiles, five rows to a digit: 4,000 to train on, and 1,000 held out
        sheet = torch.from_numpy(np.array(Image.open(ASSETS / "mnist5k.png")))
        tiles = sheet.view(50, 28, 100, 28).transpose(1, 2)
        images = (tiles[:, 80:] if held_out else tiles[:, :80]).reshape(-1, 1, 28, 28)
        labels, classes = torch.arange(10).repeat_interleave(len(images) // 10), "0123456789"
    else:
        with as_bad_input(f"--dataset {dataset}: {hint}", Exception):  # torchvision raises any type for damaged files
            DOWNLOADS.mkdir(exist_ok=True)
            with FileLock(DOWNLOADS / ".lock"):
                data = TORCHVISION[dataset](DOWNLOADS, train=not held_out, download=True)
            images, labels, classes = torch.as_tensor(data.data), torch.as_tensor(data.targets), data.classes
        images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    if image_size not in (None, images.shape[-1]):
        images = torch.cat([resize(part, [image_size, image_size]) for part in images.split(1000)])
    return images, labels, tuple(classes)


def check_data(data: Any, batch_size: int) -> Tensor:
    """Return the samples in what `batches` takes, without labels; raises BadInput for another type, or too few."""
    samples = getattr(data, "images", data)
    kind, shape = getattr(samples, "dtype", type(samples).__name__), [*getattr(samples, "shape", [])]
    if 0 in shape or not ((kind is torch.float32 and shape) or (kind is torch.uint8 and len(shape) == 4)):
        asked = "a tensor (torch.from_numpy), uint8 (N, C, H, W) or float32 (N, ...)"
        raise BadInput(f"data must be {asked}, not {type(samples).__name__} {kind} {shape}")
    if kind is torch.float32 and not samples.isfinite().all():
        raise BadInput("data hold NaN or infinity; leave out such rows")
    if batch_size > max(64, len(samples)):  # small folders train with the default
        raise BadInput(f"--batch-size {batch_size}: there are {len(samples)} images; take so many or fewer")
    return samples


def describe_data(data: tuple, batch_size: int) -> dict[str, list]:
    """Return what must be the same in all processes and as a run is resumed; raises BadInput as `check_data` does."""
    samples = [check_data(each, batch_size) for each in data]
    labeled = [each for each in data if hasattr(each, "labels")]
    facts = {"data_shapes": [[*each.shape] for each in samples], "classes": [[*each.classes] for each in labeled]}
    facts["data_types"] = [str(each.dtype).removeprefix("torch.") for each in samples]
    return facts | {"label_checksums": [checksum(each.labels) for each in labeled]}


def checksum(values: Tensor) -> int:
    """Return the CRC-32 of a tensor's numbers."""
    total = 0
    for part in values.split(1000):
        total = zlib.crc32(part.cpu().contiguous().numpy(), total)
    return total


def note_images(sums: list[int], places: dict[str, list[int]]) -> None:
    """Print a line if images have other checksums in another place: no two machines need resize to the same bits."""
    for place in [place for place, others in places.items() if sums != others]:
        reason = "was one of them replaced, or does the script change them?"
        show_lines(f"note: as many images as {place}, but not the same to the bit: {reason}")


def to_float(images: Tensor) -> Tensor:
    """Return uint8 images as floats in [-1, 1]."""
    return images.float() / 127.5 - 1


def to_uint8(images: Tensor) -> Tensor:
    """Return float images in [-1, 1] as uint8, rounded; values outside are clipped."""
    return images.add(1).mul(127.5).round().clamp(0, 255).byte()


def batches(data: Any, batch_size: int, seed: int, first_step: int = 0, rows=slice(None), device=None) -> Iterator:
    """Yield each step's batch, floats, without end; of LabeledImages, with its labels.

    data: a tensor (N, ...), or LabeledImages; uint8 is scaled to [-1, 1]. rows: the slice of every batch. device: where
    the batches are, and the data too, if they take no more than ON_DEVICE bytes; None leaves them where they are.
    Raises BadInput as `check_data` does.
    """
    check_data(data, batch_size)
    parts = [data.images, data.labels] if hasattr(data, "labels") else [data]
    parts = [part.to(device) if part.nbytes <= ON_DEVICE else part for part in parts]
    for indices in batch_order(len(parts[0]), batch_size, seed, first_step, rows):
        batch = [part.index_select(0, indices.to(part.device, non_blocking=True)).to(device) for part in parts]
        batch[0] = to_float(batch[0]) if batch[0].dtype == torch.uint8 else batch[0]
        yield batch[0] if len(batch) == 1 else tuple(batch)


def batch_order(count: int, batch_size: int, seed: int, first_step: int = 0, rows: slice = slice(None)) -> Iterator:
    """Yield the indices in [0, count) of `rows` of each step's batch, int64, without end; every batch is full."""
    epoch, used = divmod(first_step * batch_size, count)
    order = torch.empty(0, dtype=torch.int64)
    while True:
        while len(order) < batch_size:  # a batch may cross into the next epoch, which has its own permutation
            shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(seed_for(seed, epoch)))
            order = torch.cat([order, shuffled[used:]])
            epoch, used = epoch + 1, 0
        yield order[:batch_size][rows]
        order = order[batch_size:]


def seed_step(generator: torch.Generator, device: torch.device, rank: int, *key: int) -> None:
    """Seed all random numbers of a step: a function of `key`, and of the rank for those of torch itself."""
    generator.manual_seed(seed_for(*key))
    own = seed_for(*key, 1 + rank)
    torch.default_generator.manual_seed(own)  # torch.manual_seed takes half a millisecond if CUDA is idle
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(own)


def seed_for(*key: int) -> int:
    """Return a seed for torch that is a function of `key`; keys that differ by little give unrelated seeds."""
    # torch's CPU generator keeps 32 bits of a seed. With seed + step, run 1 at step 0 would repeat run 0 at step 1.
    return int(np.random.SeedSequence(key).generate_state(1)[0])
