"""The images to train on, with or without their labels, by the name of a data set or the path of a folder."""

from pathlib import Path

import torch
from torch import Tensor

from common.data import DATASETS, DOWNLOADED, FOLDER_IMAGE_SIZE, LabeledImages, load_mnist5k, load_stacked_digits
from common.errors import BadInput
from common.images.folder import folder_labels, load_folder
from common.images.streaming import StreamedImages

RESIZED_LIMIT = 2**30  # bytes of pixels


def load_images(dataset: str, image_size: int | None = None) -> Tensor | StreamedImages:
    """Return the training images of `dataset`, square, as uint8 (N, C, H, W) with C 1 or 3; a big folder as a stream.

    dataset: one of DATASETS, or a path to a folder of images. image_size: pixels a side; None keeps a data set's own
    size, and scales the images of a folder to 64x64. Raises BadInput if there are no such images.
    """
    if dataset in DATASETS:
        return resized(load_named(dataset)[0], image_size)
    return load_folder(folder_path(dataset), image_size or FOLDER_IMAGE_SIZE)


def load_labeled_images(dataset: str, image_size: int | None = None) -> LabeledImages:
    """Return what `load_images` does, with the class of each image; raises BadInput, also if there are no labels."""
    if dataset == "stacked-digits":
        message = "has no class labels; name another data set, or a folder with a folder of images for each class"
        raise BadInput(f"--dataset {dataset}: {message}")
    if dataset in DATASETS:
        images, labels, classes = load_named(dataset)
        return LabeledImages(resized(images, image_size), labels, classes)
    labels, classes = folder_labels(folder_path(dataset))
    return LabeledImages(load_images(dataset, image_size), labels, classes)


def load_named(dataset: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Return the images of a data set in DATASETS, their labels, and the names of the classes."""
    if dataset in DOWNLOADED:
        from common.images.downloads import load_torchvision  # torchvision takes as long to load as torch

        return load_torchvision(dataset)
    return *(load_mnist5k if dataset == "mnist5k" else load_stacked_digits)(), tuple("0123456789")


def folder_path(dataset: str) -> Path:
    """Return the path of a folder; raises BadInput if there is none."""
    if not dataset or not Path(dataset).is_dir():  # Path("") is the current folder
        message = f"neither {', '.join(DATASETS)} nor a folder; name one of those or a folder that holds images"
        raise BadInput(f"--dataset {dataset or repr(dataset)}: {message}")
    return Path(dataset)


def resized(images: Tensor, size: int | None) -> Tensor | StreamedImages:
    """Return square images (N, C, S, S) scaled to `size` pixels a side; None keeps their size.

    If they would take more than RESIZED_LIMIT, they are a stream, in which each is scaled for its batch.
    """
    if size in (None, images.shape[-1]):
        return images

    from torchvision.transforms.v2.functional import resize  # as above

    if images.shape[:2].numel() * size**2 > RESIZED_LIMIT:
        shape = (images.shape[1], size, size)
        return StreamedImages(range(len(images)), shape, lambda index: resize(images[index], [size, size]))
    return torch.cat([resize(part, [size, size]) for part in images.split(1000)])
