"""The promise of the default run, measured: `pytest -m promise -s` (about ten minutes on two cores).

A classifier trained on the digits that the GAN trains on, tested on the thousand that neither saw, judges 1,000 samples
of a run without options. Time is printed, not asserted.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchvision.transforms.v2 import RandomAffine

from common.data import load_mnist5k, to_float

pytestmark = pytest.mark.promise
SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
ORDERS = ["detach", "retain_graph", "generator_first", "simultaneous", "resample"]


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(0)
    layers = []
    for narrow, wide in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(128 * 4 * 4, 10))
    images, labels = load_mnist5k()
    epochs, jitter = 25, RandomAffine(degrees=12, translate=(0.1, 0.1), scale=(0.9, 1.1), fill=-1)
    optimizer = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * 80)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(50):
            loss = F.cross_entropy(network(jitter(to_float(images[batch]))), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    images, labels = load_mnist5k(held_out=True)
    with torch.no_grad():
        accuracy = (network(to_float(images)).argmax(1) == labels).float().mean().item()
    print(f"\nclassifier: {accuracy:.1%} of 1,000 held-out digits right")
    assert accuracy >= 0.97
    return network


@pytest.mark.parametrize("order", ORDERS)
def test_the_default_run_draws_digits_of_every_kind(order, classifier, tmp_path):
    start = time.perf_counter()
    script = [sys.executable, SCRIPTS / f"gan_{order}.py", "--runs-dir", tmp_path]
    subprocess.run(script, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    (run,) = (tmp_path / f"gan_{order}").iterdir()
    output = tmp_path / "images.npz"
    sample = [sys.executable, SCRIPTS / "sample.py", run, "--count", "1000", "--output", output]
    subprocess.run(sample, check=True, capture_output=True)

    images = torch.from_numpy(np.load(output)["images"])
    with torch.no_grad():
        confidence, digit = classifier(to_float(images)).softmax(1).max(1)
    confident = (confidence >= 0.9).float().mean().item()
    shares = torch.bincount(digit, minlength=10) / len(images)
    print(f"gan_{order}: {seconds:.0f} s, {confident:.1%} confident, rarest digit {shares.min():.1%}")
    assert confident >= 0.8
    assert shares.min() >= 0.02
