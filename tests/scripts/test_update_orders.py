"""Every update order does what its name says with the shipped networks, and two pairs of orders are one computation."""

import copy

import pytest
import torch
from helpers import ORDERS, module_of
from reference import step
from test_any_networks import OPTIMIZERS, Z, sgd, trained

from common.models import MODELS, conditional
from scripts import gan_conditional

pytestmark = pytest.mark.numerics


def step_of(order):
    return module_of(f"gan_{order}").train_step


def networks(model, dtype):
    torch.manual_seed(0)
    return [network.to(dtype) for network in MODELS[model]((1, 28, 28), Z)]


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("order", ORDERS)
def test_weights_and_results_agree_with_the_reference_in_float64(order, model):
    pair = networks(model, torch.float64)
    reference = copy.deepcopy(pair)
    optimizers, others = ([sgd(network.parameters()) for network in networks] for networks in (pair, reference))
    for number in range(3):
        torch.manual_seed(number)
        real, z = torch.rand(3, 1, 28, 28).double() * 2 - 1, torch.randn(3, Z).double()
        torch.manual_seed(1000 + number)
        result = step_of(order)(*pair, *optimizers, real, z)
        torch.manual_seed(1000 + number)
        torch.testing.assert_close(result, step(order, *reference, *others, real, z), rtol=1e-12, atol=0)
    for network, other in zip(pair, reference, strict=True):
        expected = weights(other)
        assert (weights(network) - expected).abs().max() <= 1e-12 * expected.abs().max()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_step_on_cuda_leaves_its_results_there(order, model):
    pair = [network.cuda() for network in networks(model, torch.float32)]
    optimizers = [sgd(network.parameters()) for network in pair]
    real, z = torch.rand(4, 1, 28, 28, device="cuda") * 2 - 1, torch.randn(4, Z, device="cuda")
    for value in step_of(order)(*pair, *optimizers, real, z).values():
        assert value.is_cuda
        assert value.isfinite()


def end_of(order, model, dtype):
    """The weights of both networks after 20 steps of Adam."""
    return trained(step_of(order), networks(model, dtype), OPTIMIZERS["adam"], (1, 28, 28), dtype, steps=20)


def difference(order, other, model):
    ends = end_of(order, model, torch.float64), end_of(other, model, torch.float64)
    return max((a - b).abs().max() for a, b in zip(*ends, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_retain_graph_and_detach_end_with_the_same_bits_in_float32(model):
    ends = end_of("retain_graph", model, torch.float32), end_of("detach", model, torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_generator_first_is_the_simultaneous_update_and_d_first_is_not(model):
    """G answers the D before its step, D the fakes of the G before its step: no order of steps can be told."""
    assert difference("generator_first", "simultaneous", model) < 1e-12
    assert difference("detach", "simultaneous", model) > 1e-6


@pytest.mark.parametrize("model", MODELS)
def test_the_conditional_step_is_that_of_detach_for_networks_that_know_their_labels(model):
    class Told(torch.nn.Module):
        """A network that gets, with its inputs, the labels of the batch."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, inputs):
            return self.network(inputs, labels)

    torch.manual_seed(0)
    pair = conditional(model, (1, 28, 28), Z, classes=3)
    told = [Told(network) for network in copy.deepcopy(pair)]
    optimizers, others = ([sgd(network.parameters()) for network in networks] for networks in (pair, told))
    for number in range(3):
        labels = torch.tensor([number, 2, 0])
        real, z = torch.rand(3, 1, 28, 28) * 2 - 1, torch.randn(3, Z)
        result = gan_conditional.train_step(*pair, *optimizers, real, labels, z)
        assert result == step_of("detach")(*told, *others, real, z)
    assert all(weights(network).equal(weights(other)) for network, other in zip(pair, told, strict=True))
