"""Every update order does what its name says with the shipped networks; two orders end with the same bits."""

import copy

import pytest
import torch
from reference import step
from test_any_networks import Z, adam, every_order, sgd, step_of, trained, weights

from common.conditional import conditional
from common.models import MODELS
from scripts import gan_conditional

pytestmark = pytest.mark.numerics
SHAPE = 1, 28, 28
every_model = pytest.mark.parametrize("model", ["conv", "mlp"])  # wide is conv with more channels


def networks(model, dtype=torch.float64):
    torch.manual_seed(0)
    return [network.to(dtype) for network in MODELS[model](SHAPE, Z)]


@every_model
@every_order
def test_weights_and_results_agree_with_the_reference_in_float64(order, model):
    pair = networks(model)
    reference = copy.deepcopy(pair)
    optimizers, others = ([sgd(network.parameters()) for network in networks] for networks in (pair, reference))
    for number in range(3):
        torch.manual_seed(number)
        real, z = torch.rand(3, *SHAPE).double() * 2 - 1, torch.randn(3, Z).double()
        torch.manual_seed(1000 + number)  # for the orders that draw more
        result = step_of(order)(*pair, *optimizers, real, z)
        torch.manual_seed(1000 + number)
        torch.testing.assert_close(result, step(order, *reference, *others, real, z), rtol=1e-12, atol=0)
    for network, other in zip(pair, reference, strict=True):
        expected = weights(other)
        assert (weights(network) - expected).abs().max() <= 1e-12 * expected.abs().max()


@every_model
@pytest.mark.parametrize("orders", [("retain_graph", "detach"), ("generator_first", "simultaneous")])
def test_two_orders_end_with_the_same_bits_in_float32(orders, model):
    found = []
    for order in orders:
        pair = networks(model, torch.float32)
        found.append(torch.cat(trained(order, step_of(order), pair, SHAPE, torch.float32, adam, steps=8)))
    assert found[0].equal(found[1])


@every_model
def test_the_conditional_step_is_that_of_detach_for_networks_that_know_their_labels(model):
    torch.manual_seed(0)
    pair = conditional(model, SHAPE, Z, classes=3)
    informed, labels = copy.deepcopy(pair), torch.tensor([0, 2, 0])
    for network in informed:
        network.register_forward_pre_hook(lambda _, given: (*given, labels))
    optimizers, others = ([sgd(network.parameters()) for network in networks] for networks in (pair, informed))
    for number in range(3):
        labels[0] = number
        real, z = torch.rand(3, *SHAPE) * 2 - 1, torch.randn(3, Z)
        result = gan_conditional.train_step(*pair, *optimizers, real, labels, z)
        assert result == step_of("detach")(*informed, *others, real, z)
    assert all(weights(network).equal(weights(other)) for network, other in zip(pair, informed, strict=True))


# One stage is the simultaneous update, however large D's logits are.

N = 16


def gradients(order, networks, real, z):
    """Return the gradient of each network as a whole, in float64."""
    networks = copy.deepcopy(networks)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in networks]
    result = step_of(order)(*networks, *optimizers, real, z)
    assert all(value.isfinite() for value in result.values())
    return [torch.cat([p.grad.double().flatten() for p in network.parameters()]) for network in networks]


def off(order, model, logits):
    """Return the relative difference between a network's gradient in float32 and in float64, of the worse network.

    D gives `logits`, with its own derivatives. Of a network as a whole: the gradient of a bias before a normalisation
    is what rounding leaves of zero, and relative to itself anything.
    """
    torch.manual_seed(0)
    generator, discriminator = MODELS[model]((1, 28, 28), 8)
    with torch.no_grad():
        for p in discriminator.parameters():
            p *= 0.3  # small derivatives, as a D that is sure of itself may have
    discriminator.register_forward_hook(lambda *given: given[-1] - given[-1].detach() + logits.to(given[-1])[:, None])
    pair = generator, discriminator
    real, z = torch.rand(N, 1, 28, 28) * 2 - 1, torch.randn(N, 8)
    exact = [copy.deepcopy(network).double() for network in pair]
    expected = gradients("simultaneous", exact, real.double(), z.double())
    # What is below the smallest normal float32 is not representable. In D's gradient, each of N fakes may count up to
    # 2^-64 too much; the derivatives of a logit of this D have a norm below 100.
    floors = torch.finfo(torch.float32).tiny, N * 100 * 2.0**-64
    worst = 0.0
    for ours, theirs, floor in zip(gradients(order, pair, real, z), expected, floors, strict=True):
        assert ours.isfinite().all()
        worst = max(worst, (((ours - theirs).norm() - floor) / theirs.norm().clamp(min=floor)).item())
    return worst


# Not symmetric: the gradients of real and fake would cancel in D's last bias, and what is left be rounding.
LOGITS = {
    "from -80 to 70": torch.linspace(-80, 70, N),
    "all at -80": torch.full((N,), -80.0),
    "all at 80": torch.full((N,), 80.0),
    "far beyond": torch.linspace(-1000, 900, N),
}


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("model", ["conv", "mlp"])
def test_a_discriminator_sure_of_itself_costs_no_accuracy_in_float32(model, logits):
    # Where real and fake nearly cancel, rounding is what is left for either order.
    assert off("one_stage", model, logits) <= max(1e-5, 2 * off("simultaneous", model, logits))
