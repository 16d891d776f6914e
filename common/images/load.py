"""The images to train on, by the name of a data set or the path of a folder."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from common.data import DATASETS, DOWNLOADED, FOLDER_IMAGE_SIZE, load_mnist5k, load_stacked_digits
from common.errors import BadInput

if TYPE_CHECKING:
    from common.images.streaming import StreamedImages

RESIZED_LIMIT = 2**30  # bytes of pixels


def load_images(dataset: str, image_size: int | None = None) -> "Tensor | StreamedImages":
    """Return the training images of `dataset`, square, as uint8 (N, C, H, W) with C 1 or 3; big ones as a stream.

    dataset: `mnist5k` (shipped), `stacked-digits` (made of it), `mnist`, `fashion-mnist`, `cifar10` (downloaded once)
    or a path to a folder of images.
    image_size: pixels a side; None keeps a data set's own size, and scales the images of a folder to 64x64.
    Raises BadInput if there are no such images.
    """
    if dataset == "mnist5k":
        return resized(load_mnist5k()[0], image_size)
    if dataset == "stacked-digits":
        return resized(load_stacked_digits()[0], image_size)
    if dataset in DOWNLOADED:
        from common.images.downloads import load_torchvision  # as below, only what is asked for is loaded

        return resized(load_torchvision(dataset), image_size)
    if not os.path.isdir(dataset):  # noqa: PTH112 (Path.is_dir raises for long names, and Path("") is this folder)
        message = f"neither {', '.join(DATASETS)} nor a folder; name one of those or a folder that holds images"
        raise BadInput(f"--dataset {dataset or repr(dataset)}: {message}")

    from common.images.folder import load_folder  # only a folder needs the modules for image files

    return load_folder(Path(dataset), image_size or FOLDER_IMAGE_SIZE)


def resized(images: Tensor, size: int | None) -> "Tensor | StreamedImages":
    """Return square images (N, C, S, S) scaled to `size` pixels a side; None keeps their size.

    If they would take more than RESIZED_LIMIT, they are a stream, in which each is scaled for its batch.
    """
    if size in (None, images.shape[-1]):
        return images

    from torchvision.transforms.v2.functional import resize  # torchvision takes as long to load as torch

    if images.shape[:2].numel() * size**2 > RESIZED_LIMIT:
        from common.images.streaming import StreamedImages

        shape = (images.shape[1], size, size)
        return StreamedImages(range(len(images)), shape, lambda index: resize(images[index], [size, size]))
    return torch.cat([resize(part, [size, size]) for part in images.split(1000)])
