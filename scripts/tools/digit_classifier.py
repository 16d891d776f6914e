"""A classifier of handwritten digits, trained when it is needed on those that ship with the repository."""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms.v2.functional import resize

from common.data import load_mnist5k, to_float

EPOCHS, BATCH_SIZE = 10, 50
CONFIDENT = 0.9


@cache
def digit_classifier() -> tuple[nn.Sequential, float]:
    """Return the classifier, in evaluation mode on the CPU, and its accuracy on 1,000 held-out digits, from 0 to 1.

    Input: floats (N, 1, 28, 28) in [-1, 1]; output: logits (N, 10). Without its last layer, `[:-1]`, it gives 128
    features of an image. Its seed is fixed, and it leaves the global generator unchanged. Training takes some fifteen
    seconds on one core, once per process.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():  # the caller may be inside no_grad()
        torch.manual_seed(0)
        network = train_classifier()
    images, labels = load_mnist5k(held_out=True)
    with torch.no_grad():
        return network, (network(to_float(images)).argmax(1) == labels).float().mean().item()


def train_classifier() -> nn.Sequential:
    """Return a new classifier, trained on the 4,000 digits that the GANs train on, in evaluation mode."""
    layers = []
    for narrow, wide in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
    layers += [nn.Flatten(), nn.Dropout(0.3), nn.Linear(128 * 4 * 4, 128), nn.BatchNorm1d(128), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(128, 10))
    images, labels = load_mnist5k()
    optimizer = torch.optim.Adam(network.parameters())
    steps = EPOCHS * len(images) // BATCH_SIZE
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH_SIZE):
            loss = F.cross_entropy(network(jitter(to_float(images[batch]))), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def jitter(images: Tensor) -> Tensor:
    """Return images (N, C, H, W) in [-1, 1], each slightly rotated, scaled, sheared and shifted at random, on black."""
    change = torch.empty(len(images), 2, 3).uniform_(-1, 1) * torch.tensor([0.2, 0.2, 0.15])
    where = F.affine_grid(torch.eye(2, 3) + change, images.shape, align_corners=False)
    return F.grid_sample(images + 1, where, align_corners=False) - 1


def as_digits(images: Tensor) -> Tensor:
    """Return uint8 images (N, C, H, W) as the classifier's input: floats (N, 1, 28, 28) in [-1, 1]."""
    return to_float(resize(images, [28, 28]).float().mean(1, keepdim=True))


def classify(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return of uint8 images (N, C, H, W) whether the classifier's confidence is CONFIDENT or more, and the digit.

    Both have the shape (N,); the digit is an int64 from 0 to 9.
    """
    with torch.no_grad():
        logits = torch.cat([digit_classifier()[0](as_digits(chunk)) for chunk in images.split(1000)])
    confidence, digits = logits.softmax(1).max(1)
    return confidence >= CONFIDENT, digits


def measure_digits(images: Tensor) -> dict[str, float]:
    """Return the share of uint8 images (N, C, H, W) classified with confidence, and that of the rarest digit."""
    confident, digits = classify(images)
    rarest = torch.bincount(digits, minlength=10).min().item() / len(images)
    return {"confident": confident.float().mean().item(), "rarest": rarest}
