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

    Downloads them if they are missing: the first process of each machine, for which the others wait. Raises BadInput if
    that fails; the others then end with LostRank.
    """
    first = int(os.environ.get("LOCAL_RANK", 0)) == 0
    if not first:
        meet()
    try:
        data = TORCHVISION[dataset](DOWNLOADS, train=True, download=True)
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"--dataset {dataset}: the download into {DOWNLOADS} failed ({reason}); "
            "--dataset mnist5k ships with the repository and needs no network"
        ) from error
    if first:
        meet()
    images, labels = torch.as_tensor(data.data), torch.as_tensor(data.targets)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    return images, labels, tuple(data.classes)
