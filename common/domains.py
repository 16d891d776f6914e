"""Two domains of images: unpaired, for CycleGAN, or in pairs."""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from common.data import load_dataset, load_images, resized
from common.errors import BadInput
from common.image_files import image_paths, load_files, map_images


@dataclass(frozen=True)
class Domains:
    """The training and test images of a CycleGAN: uint8 (N, C, H, W), each with its own N."""

    a: Tensor  # training images of domain A, of the size to crop from
    b: Tensor  # the same of domain B
    test_a: Tensor  # test images of domain A, of the size to train at; the training images if there are no others
    test_b: Tensor  # the same of domain B
    truth: Tensor | None  # the correct translation of each image of `test_a`, or None if it is unknown
    augmented: bool  # whether batches of `a` and `b` are to be cropped to the size to train at, and flipped at random


def load_domains(dataset: str, image_size: int | None = None) -> Domains:
    """Return the domains in the folders trainA, trainB, testA and testB of `dataset`, or two made from `dataset`.

    image_size: pixels a side to train at; None is 256 for the four folders, and as in `load_images` for other data. The
    four are RGB, those to train on bigger, to crop from; they are also the test's if there are no others.
    """
    folder = Path(dataset)
    if not dataset or not (folder / "trainA").is_dir():
        return make_domains(dataset, image_size)
    size = image_size or 256
    trained, tested = ([folder / f"{use}{domain}" for domain in "AB"] for use in ("train", "test"))
    tested = [path if path.is_dir() else instead for path, instead in zip(tested, trained, strict=True)]
    parts = [(path, round(size * 286 / 256)) for path in trained] + [(path, size) for path in tested]  # as published
    return Domains(*[load_files(image_paths(path), side, "RGB") for path, side in parts], truth=None, augmented=True)


def make_domains(dataset: str, image_size: int | None) -> Domains:
    """Return every other image of a data set as domain A, the outlines of the rest as B; every tenth one is a test."""
    images = load_images(dataset, image_size, hold_out=False)
    if len(images) < 3:
        raise BadInput(f"--dataset {dataset}: two domains take three images or more, one of them to test on; add some")
    if dataset == "mnist5k":
        held_out = resized(load_dataset(dataset, held_out=True)[0], image_size)
    else:
        held_out, images = images[:10_000:10], images[torch.arange(len(images)) % 10 > 0]  # 1,000 measure the error
    truth = outlines(held_out)
    return Domains(images[0::2], outlines(images[1::2]), held_out, truth, truth, augmented=False)


def load_pairs(a: str | Path, b: str | Path, image_size: int = 64) -> Tensor:
    """Return the images of two folders, paired by their paths in them: uint8 (N, Ca + Cb, image_size, image_size)."""
    found = {}, {}
    for folder, files in zip((a, b), found, strict=True):
        for path in image_paths(Path(folder)):
            name = Path(path).relative_to(folder).with_suffix("")
            if files.setdefault(name, path) != path:
                raise BadInput(f"{path}: {files[name]} has the same name but for the suffix; rename or remove one")
    if alone := sorted(found[0].keys() ^ found[1].keys()):
        raise BadInput(f"{(found[0] | found[1])[alone[0]]}: no image of this name in the other folder; add it there")
    parts = zip(*(load_files([files[name] for name in sorted(files)], image_size) for files in found), strict=True)
    return map_images(torch.cat(pair) for pair in parts)


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
