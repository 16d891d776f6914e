"""A classifier of the classes of a data set, trained on its images when it is needed, and what it says of images."""

from dataclasses import dataclass, replace
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms.v2.functional import resize
from tqdm import tqdm

from common.conditional import LabeledImages
from common.data import TORCHVISION, load_dataset, to_float

BATCH_SIZE = 50
STEPS = {"digits": 800, "classes": 2400}  # some fifteen seconds on one core, and some 45
EPOCHS, FEWEST_STEPS = 80, 400  # of a data set of fewer images, whose classifier takes fewer steps
LARGEST = 32  # pixels a side at which images are judged
CONFIDENT = 0.9


@dataclass(frozen=True)
class Classifier:
    """A network that tells classes apart, on the CPU and in evaluation mode.

    network: floats (N, C, S, S) in [-1, 1] to logits; without its last layer it gives 128 features of an image. shape:
    (C, S). classes: their names. accuracy: on `held_out` images of the same data that it has not seen, from 0 to 1.
    """

    network: nn.Sequential
    shape: tuple[int, int]
    classes: tuple[str, ...]
    accuracy: float
    held_out: int

    def features(self, images: Tensor) -> Tensor:
        """Return the features (N, 128) of uint8 images (N, C, H, W); a network for greyscale takes the mean colour."""
        parts, (channels, size) = [], self.shape
        for part in images.split(500):
            part = resize(part, [size, size]).float()
            part = to_float(part.mean(1, keepdim=True) if channels == 1 else part)
            with torch.no_grad():
                parts.append(self.network[:-1](part))
        return torch.cat(parts)

    def classify(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return of features (N, 128) whether the confidence is CONFIDENT or more, and the class, both (N,)."""
        with torch.no_grad():
            confidence, classes = self.network[-1](features).softmax(1).max(1)
        return confidence >= CONFIDENT, classes

    def measure(self, features: Tensor) -> dict[str, float]:
        """Return the share of features (N, 128) classified with confidence, and the share of each class."""
        confident, classes = self.classify(features)
        shares = torch.bincount(classes, minlength=len(self.classes)) / len(features)
        named = {f"share_of_{name}": share.item() for name, share in zip(self.classes, shares, strict=True)}
        return {"confident": confident.float().mean().item(), "rarest": shares.min().item()} | named


@cache
def digit_classifier() -> Classifier:
    """Return the classifier of handwritten digits, trained on those that ship with the repository."""
    train, held_out = (LabeledImages(*load_dataset("mnist5k", held_out=part)) for part in (False, True))
    return train_classifier(train, held_out, STEPS["digits"])


@cache
def class_classifier(dataset: str, data: LabeledImages) -> Classifier:
    """Return a classifier of the classes of a data set, trained on the first call.

    It is judged on every tenth image of `data`, which are those of a folder, or on torchvision's test images.
    """
    if dataset in TORCHVISION:
        size = data.images.shape[-1]
        train, held_out = (LabeledImages(*load_dataset(dataset, size, part)) for part in (False, True))
    else:
        numbers = torch.arange(len(data.labels))
        parts = numbers[numbers % 10 > 0], numbers[::10]
        train, held_out = (replace(data, images=data.images[rows], labels=data.labels[rows]) for rows in parts)
    steps = min(STEPS["classes"], max(FEWEST_STEPS, EPOCHS * len(train.labels) // BATCH_SIZE))
    return train_classifier(train, held_out, steps)


def new_classifier(data: LabeledImages) -> Classifier:
    """Return an untrained classifier of images like those of `data`, of at most LARGEST pixels a side."""
    channels, size = shape = data.images.shape[1], min(data.images.shape[2], LARGEST)
    layers = []
    for narrow, wide in ((channels, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
        size = (size + 1) // 2
    layers += [nn.Flatten(), nn.Dropout(0.3), nn.Linear(128 * size**2, 128), nn.BatchNorm1d(128), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(128, len(data.classes)))
    return Classifier(network.eval(), shape, data.classes, accuracy=0.0, held_out=0)


def train_classifier(train: LabeledImages, held_out: LabeledImages, steps: int) -> Classifier:
    """Return a classifier trained for so many steps; its seed is fixed, and the global generator stays as it was."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():  # the caller may be inside no_grad()
        torch.manual_seed(0)
        classifier, order = new_classifier(train), torch.empty(0, dtype=torch.int64)
        network = classifier.network.train()
        optimizer = torch.optim.Adam(network.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
        for _ in tqdm(range(steps), "training the classifier", leave=False, delay=1, disable=None):
            if len(order) < 2:  # batch normalisation takes two images or more
                order = torch.randperm(len(train.labels))
            batch, order = order[:BATCH_SIZE], order[BATCH_SIZE:]
            images = to_float(resize(train.images[batch], [classifier.shape[1]] * 2))
            loss = F.cross_entropy(network(jitter(images)), train.labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    right = classifier.classify(classifier.features(held_out.images))[1] == held_out.labels
    return replace(classifier, accuracy=right.float().mean().item(), held_out=len(right))


def jitter(images: Tensor) -> Tensor:
    """Return images (N, C, H, W) in [-1, 1], each slightly rotated, scaled, sheared and shifted at random, on black."""
    change = torch.empty(len(images), 2, 3).uniform_(-1, 1) * torch.tensor([0.2, 0.2, 0.15])
    where = F.affine_grid(torch.eye(2, 3) + change, images.shape, align_corners=False)
    return F.grid_sample(images + 1, where, align_corners=False) - 1
