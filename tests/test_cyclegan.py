"""CycleGAN's step: every network learns from its own loss, as a reference written with `autograd.grad` has it."""

import copy
import itertools

import pytest
import torch

from common.models import cyclegan_networks
from scripts.cyclegan import train_step

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
LR = 2e-4


def make(dtype, device="cpu"):
    torch.manual_seed(0)
    networks = cyclegan_networks((1, 12, 12), width=4, blocks=1, halvings=2)
    return [network.to(device, dtype) for network in networks]


def batch(step, dtype, device="cpu"):
    draws = torch.Generator().manual_seed(step)
    return [(torch.rand(2, 1, 12, 12, generator=draws, dtype=dtype) * 2 - 1).to(device) for _ in range(2)]


def parameters(*networks):
    return list(itertools.chain(*(network.parameters() for network in networks)))


def flat(*networks):
    return torch.cat([p.detach().flatten() for p in parameters(*networks)])


@pytest.mark.parametrize("device", DEVICES)
def test_one_step_changes_all_networks_and_returns_what_it_promises(device):
    networks = make(torch.float32, device)
    before = [flat(network) for network in networks]
    optimizers = [torch.optim.Adam(parameters(*pair), lr=LR) for pair in (networks[:2], networks[2:])]
    result = train_step(*networks, *optimizers, *batch(0, torch.float32, device))
    assert set(result) == {"d_loss", "adversarial_loss", "cycle_loss", "identity_loss"}
    for value in result.values():
        assert value.ndim == 0
        assert not value.requires_grad
        assert value.isfinite()
        assert value.device.type == device
    assert all((old != flat(network)).any() for old, network in zip(before, networks, strict=True))


def reference_step(a_to_b, b_to_a, d_a, d_b, sgd, a, b):
    """The same update by plain gradient descent, every gradient from `torch.autograd.grad`."""
    fake_b, fake_a = a_to_b(a), b_to_a(b)
    adversarial = ((d_b(fake_b) - 1) ** 2).mean() + ((d_a(fake_a) - 1) ** 2).mean()
    cycle = (b_to_a(fake_b) - a).abs().mean() + (a_to_b(fake_a) - b).abs().mean()
    identity = (a_to_b(b) - b).abs().mean() + (b_to_a(a) - a).abs().mean()
    sgd(parameters(a_to_b, b_to_a), adversarial + 10 * cycle + 5 * identity)
    d_loss = sum(
        (((d(real) - 1) ** 2).mean() + (d(fake.detach()) ** 2).mean()) / 2
        for d, real, fake in ((d_a, a, fake_a), (d_b, b, fake_b))
    )
    sgd(parameters(d_a, d_b), d_loss)
    return {"d_loss": d_loss, "adversarial_loss": adversarial, "cycle_loss": cycle, "identity_loss": identity}


def test_weights_and_losses_agree_with_the_reference_in_float64():
    def sgd(weights, loss):
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 0.001 * gradient

    networks = make(torch.float64)
    references = copy.deepcopy(networks)
    optimizers = [torch.optim.SGD(parameters(*pair), lr=0.001) for pair in (networks[:2], networks[2:])]
    for step in range(5):
        result = train_step(*networks, *optimizers, *batch(step, torch.float64))
        expected = reference_step(*references, sgd, *batch(step, torch.float64))
        for key, value in result.items():
            torch.testing.assert_close(value, expected[key].detach(), rtol=1e-12, atol=0)
    difference = (flat(*networks) - flat(*references)).abs().max()
    assert difference <= 1e-12 * flat(*references).abs().max()
