"""Data sets of torchvision: MNIST, Fashion-MNIST, CIFAR-10, each downloaded once into `data/`."""

import os
from pathlib import Path

import torch
from torch import Tensor
from torchvision.datasets import CIFAR10, MNIST, FashionMNIST

from common.errors import BadInput
from common.run.ranks import meet

DOWNLOADS = Path(__file__).resolve().parents[2] / "data"
TORCHVISION = {"mnist": MNIST, "fashion-mnist": FashionMNIST, "cifar10": CIFAR10}


def load_torchvision(dataset: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Return a torchvision data set's training images, uint8 (N, C, H, W), their labels, and the classes' names.

    The first process of each machine downloads them, while the others wait. Raises BadInput if that fails.
    """
    first = int(os.environ.get("LOCAL_RANK", 0)) == 0
    if not first:
        meet()
    try:
        data = TORCHVISION[dataset](DOWNLOADS, train=True, download=True)
    except (OSError, RuntimeError) as error:
        message = f"the download into {DOWNLOADS} failed ({str(error).splitlines()[0]})"
        cure = "--dataset mnist5k ships with the repository and needs no network"
        raise BadInput(f"--dataset {dataset}: {message}; {cure}") from error
    if first:
        meet()
    images, labels = torch.as_tensor(data.data), torch.as_tensor(data.targets)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    return images, labels, tuple(data.classes)
