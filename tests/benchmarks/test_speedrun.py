"""The speedrun times training alone, of files with one function and of scripts that train by themselves."""

import pytest
from helpers import call

OWN = """
import time

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def draw(count):
    work(2)
    return drawn[:count]

def train(images, seed):
    global drawn
    assert (images.shape, seed) == ((4000, 1, 28, 28), 0)
    drawn = images * 0.0
    yield draw
    work(0.2)
    drawn = images[::40] / 127.5 - 1
    yield draw
"""
SCRIPT = """
import sys
import torch
from torch import nn
from torchvision import datasets, transforms

assert sys.argv[1:] == ["--rate", "0.1"]
images = datasets.FashionMNIST("../../data", True, transforms.Compose([transforms.Resize(8), transforms.ToTensor()]))
netG = nn.Sequential(nn.Linear(3, 64), nn.BatchNorm1d(64), nn.Unflatten(1, (1, 8, 8)))
netD = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in (netD, netG)]
for step, (real, _) in zip(range(1, 9), torch.utils.data.DataLoader(images, 4)):
    loss = netD(netG(torch.randn(4, 3))).mean() - netD(real).mean()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    assert netG[1].num_batches_tracked == step  # a look draws from a copy
"""


@pytest.mark.tools
def test_the_clock_stands_still_while_samples_are_drawn_and_who_ends_or_takes_too_long_has_not_arrived(
    tmp_path, capsys, untrained, outcome
):
    def rows(*arguments):
        call("speedrun", *arguments, "--dataset", "mnist5k", "--seeds", 1, "--look-every", 3)
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[2:]]

    own, script = tmp_path / "own.py", tmp_path / "script.py"
    own.write_text(OWN)
    script.write_text(SCRIPT)
    (default,) = rows("--target", 1e9)  # any FID is below this target: the first look is the last
    assert default[0].endswith("contender.py")
    assert (default[2], default[3]) == ("1.00", "1 of 1")
    first, second = rows(f"{script}:netG --rate 0.1", "--baseline", own, "--target", 200)
    assert 0.2 <= float(first[1].split()[0]) < 2
    assert (first[2], first[3]) == ("1.00", "1 of 1")
    assert second[1:4] == ["not reached in 10 minutes", "-", "0 of 1"]
    (late,) = rows("--baseline", own, "--target", 200, "--minutes", 0.001)
    assert late[1:4] == ["not reached in 0.001 minutes", "-", "0 of 1"]
    status, _, error = outcome("speedrun", "--baseline", f"{script}:netF --rate 0.1", "--dataset", "mnist5k")
    assert status == 1
    assert "script.py:netF --rate 0.1: failed with status 1" in error
