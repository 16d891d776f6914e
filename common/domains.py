"""Two domains of images, unpaired, for CycleGAN."""

import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from common.data import DATASETS, load_dataset, load_images
from common.errors import BadInput
from common.image_files import image_paths, load_files, print_once


def load_domains(dataset: str, image_size: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor, bool]:
    """Return training images of domains A and B, test images of both, and whether B are outlines: tests are pairs then.

    They are in the folders trainA, trainB, testA and testB of `dataset`, RGB, the first two bigger, to crop from and to
    flip at random, and the tests, too, if there are no others. Of other data every tenth image is a test; of the rest
    every other one is of A, and the outlines of those between are B. image_size: pixels a side to train at; None is 256
    for the four folders, and as in `load_images` for other data.
    """
    folder, four = Path(dataset), re.compile(r"(train|test)[\W_]*[ab]", re.IGNORECASE)  # also misspelled
    names = sorted(path.name for path in folder.glob("*") if dataset and four.fullmatch(path.name))
    if names:
        if names not in (["trainA", "trainB"], ["testA", "testB", "trainA", "trainB"]):
            raise BadInput(f"--dataset {dataset}: has {', '.join(names)}; take trainA, trainB and both tests or none")
        size = image_size or 256
        trained, tested = ([folder / f"{use}{domain}" for domain in "AB"] for use in ("train", names[0][:-1]))
        parts = [(path, round(size * 286 / 256)) for path in trained] + [(path, size) for path in tested]
        images = [load_files(image_paths(path), side, "RGB") for path, side in parts]
        return *images, False
    if folder.is_dir() and dataset not in DATASETS:
        note = f"note: {dataset}: has no trainA and trainB; domains are every other image, and outlines of the rest"
        print_once(note, file=sys.stderr)
    images = load_images(dataset, image_size, hold_out=False)
    if len(images) < 3:
        raise BadInput(f"--dataset {dataset}: two domains take three images or more, one of them to test on; add some")
    if dataset == "mnist5k":
        held_out = load_dataset(dataset, image_size, held_out=True)[0]
    else:
        held_out, images = images[:10_000:10], images[torch.arange(len(images)) % 10 > 0]  # 1,000 measure the error
    return images[0::2], outlines(images[1::2]), held_out, outlines(held_out), True


def outlines(images: Tensor) -> Tensor:
    """Return the outer outline of bright strokes, a 3x3 dilation minus the image: uint8 (N, C, H, W) in and out."""
    return (F.max_pool2d(images.float(), 3, stride=1, padding=1) - images).byte()


def crop_and_flip(images: Tensor, size: int, draws: Tensor) -> Tensor:
    """Return a square crop, (N, C, size, size), of each of images (N, C, H, W), mirrored or not."""
    # draws: (N, 3), uniform in [0, 1): the vertical position, the horizontal one, and whether to mirror (from 0.5 on).
    squares = images.unfold(2, size, 1).unfold(3, size, 1)  # a view of all: (N, C, tops, lefts, size, size)
    tops, lefts = (draws[:, :2] * torch.tensor(squares.shape[2:4], device=images.device)).long().unbind(1)
    crops = squares[torch.arange(len(images), device=images.device), :, tops, lefts]
    return torch.where(draws[:, 2, None, None, None] < 0.5, crops, crops.flip(3))
