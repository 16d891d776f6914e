"""Data sets of torchvision: MNIST, Fashion-MNIST, CIFAR-10, each downloaded once into `data/`."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torchvision.datasets import CIFAR10, MNIST, FashionMNIST

from common.errors import BadInput
from common.run.ranks import lost_ranks

DOWNLOADS = Path(__file__).resolve().parents[2] / "data"
TORCHVISION = {"mnist": MNIST, "fashion-mnist": FashionMNIST, "cifar10": CIFAR10}


def load_torchvision(dataset: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Return a torchvision data set's training images, uint8 (N, C, H, W), their labels, and the classes' names.

    Downloads them if they are missing.
    """
    factory = TORCHVISION[dataset]
    with first_on_this_machine():
        try:
            data = factory(DOWNLOADS, train=True)
        except RuntimeError:  # torchvision raises this for files that are missing or damaged
            download(dataset)
            data = factory(DOWNLOADS, train=True)
    images, labels = torch.as_tensor(data.data), torch.as_tensor(data.targets)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    return images, labels, tuple(data.classes)


def download(dataset: str) -> None:
    """Download a torchvision data set into `data/`; raises BadInput, and leaves no partial files, if that fails."""
    try:
        with tempfile.TemporaryDirectory(dir=DOWNLOADS.parent, prefix=".download-") as folder:
            TORCHVISION[dataset](folder, train=True, download=True)
            DOWNLOADS.mkdir(exist_ok=True)
            for item in Path(folder).iterdir():
                target = DOWNLOADS / item.name
                if target.is_dir():
                    shutil.rmtree(target)
                item.replace(target)
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"--dataset {dataset}: the download into {DOWNLOADS} failed ({reason}); "
            "--dataset mnist5k ships with the repository and needs no network"
        ) from error


@contextmanager
def first_on_this_machine() -> Iterator[None]:
    """Run the block in one process of each machine first, so that the others find what it has downloaded.

    They wait until it is done; if it fails, they end with LostRank.
    """
    waits = int(os.environ.get("LOCAL_RANK", 0)) > 0

    def meet() -> None:
        if dist.is_initialized():
            with lost_ranks():
                dist.all_reduce(torch.zeros(1))

    if waits:
        meet()
    yield
    if not waits:
        meet()
