"""Every update order does what its name says: the shipped networks against a reference in float64."""

import copy

import pytest
import torch
from helpers import ORDERS, PENALTIES, module_of
from reference import step

from common.models import MODELS, conv, mlp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
pytestmark = pytest.mark.numerics


def step_of(order):
    return module_of(f"gan_{order}").train_step


def sgd(network):
    """Plain SGD: what rounding does to a gradient it does to the weight, times 0.1, and no more.

    Adam divides by the size of the gradient; where that is rounding alone, as at a bias before a normalisation, two
    processors end with unlike weights.
    """
    return torch.optim.SGD(network.parameters(), lr=0.1)


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("order", ORDERS)
def test_one_step_changes_both_networks_and_returns_what_it_promises(order, model, device):
    torch.manual_seed(0)
    generator, discriminator = (network.to(device) for network in MODELS[model]((1, 28, 28), 64))
    real, z = torch.rand(4, 1, 28, 28, device=device) * 2 - 1, torch.randn(4, 64, device=device)
    before = weights(generator), weights(discriminator)
    result = step_of(order)(generator, discriminator, sgd(generator), sgd(discriminator), real, z)

    if order not in PENALTIES:
        assert set(result) == {"d_loss", "g_loss", "d_real", "d_fake"}
        assert 0 < result["d_real"] < 1
        assert 0 < result["d_fake"] < 1
    for value in result.values():
        assert value.ndim == 0
        assert not value.requires_grad
        assert value.device.type == device
        assert value.isfinite()
    for old, network in zip(before, (generator, discriminator), strict=True):
        assert (old != weights(network)).any()
        assert all(p.grad is not None for p in network.parameters() if network is generator or order != "retain_graph")


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("build", [mlp, conv])
@pytest.mark.parametrize("order", ORDERS)
def test_weights_and_results_agree_with_the_reference_in_float64(order, build, steps):
    torch.manual_seed(0)
    pair = [network.double() for network in build((1, 28, 28), 8)]
    reference = copy.deepcopy(pair)
    optimizers, reference_optimizers = ([sgd(network) for network in networks] for networks in (pair, reference))
    for number in range(steps):
        torch.manual_seed(number)
        real, z = torch.rand(3, 1, 28, 28).double() * 2 - 1, torch.randn(3, 8).double()
        torch.manual_seed(1000 + number)
        result = step_of(order)(*pair, *optimizers, real, z)
        torch.manual_seed(1000 + number)
        expected = step(order, *reference, *reference_optimizers, real, z)
        assert result.keys() == expected.keys()
        for key, value in result.items():
            torch.testing.assert_close(value, expected[key], rtol=1e-12, atol=0)
    for network, other in zip(pair, reference, strict=True):
        expected = weights(other)
        assert (weights(network) - expected).abs().max() <= 1e-12 * expected.abs().max()


@pytest.mark.parametrize("order", sorted(set(ORDERS) - {"resample", "wgan_gp"}))
def test_a_step_draws_no_random_numbers(order):
    torch.manual_seed(0)
    generator, discriminator = MODELS["mlp"]((1, 28, 28), 8)
    before = torch.get_rng_state()
    step_of(order)(
        generator, discriminator, sgd(generator), sgd(discriminator), torch.zeros(2, 1, 28, 28), torch.ones(2, 8)
    )
    assert torch.equal(before, torch.get_rng_state())
