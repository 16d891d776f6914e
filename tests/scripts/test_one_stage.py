"""One stage is the simultaneous update, however large D's logits are."""

import copy

import pytest
import torch
from test_any_networks import step_of
from torch import nn

from common.models import MODELS

TINY = torch.finfo(torch.float32).tiny
pytestmark = pytest.mark.numerics


class Steered(nn.Module):
    """A discriminator with the logits that one wants and the derivatives that it has."""

    def __init__(self, network, logits):
        super().__init__()
        self.network = network
        self.register_buffer("logits", logits)

    def forward(self, images):
        logits = self.network(images)
        return (logits - logits.detach() + self.logits.view_as(logits)).to(self.logits.dtype)


def gradients(order, networks, real, z):
    """Return the gradient of each network as a whole, in float64."""
    networks = copy.deepcopy(networks)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in networks]
    result = step_of(order)(*networks, *optimizers, real, z)
    assert all(value.isfinite() for value in result.values())
    return [torch.cat([p.grad.double().flatten() for p in network.parameters()]) for network in networks]


def off(order, model, logits):
    """Return the relative difference between a network's gradient in float32 and in float64, of the worse network.

    Of a network as a whole: the gradient of a bias before a normalisation is what rounding leaves of zero, and relative
    to itself anything.
    """
    torch.manual_seed(0)
    generator, discriminator = MODELS[model]((1, 28, 28), 8)
    with torch.no_grad():
        for p in discriminator.parameters():
            p *= 0.3  # small derivatives, as a D that is sure of itself may have
    pair = generator, Steered(discriminator, logits)
    real, z = torch.rand(64, 1, 28, 28) * 2 - 1, torch.randn(64, 8)
    exact = [copy.deepcopy(network).double() for network in pair]
    expected = gradients("simultaneous", exact, real.double(), z.double())
    # What is below the smallest normal float32 is not representable. In D's gradient, each of 64 fakes may count up to
    # 2^-64 too much; the derivatives of a logit of this D have a norm below 100.
    floors = TINY, 64 * 100 * 2.0**-64
    worst = 0.0
    for ours, theirs, floor in zip(gradients(order, pair, real, z), expected, floors, strict=True):
        assert ours.isfinite().all()
        worst = max(worst, (((ours - theirs).norm() - floor) / theirs.norm().clamp(min=floor)).item())
    return worst


# Not symmetric: the gradients of real and fake would cancel in D's last bias, and what is left be rounding.
LOGITS = {
    "from -80 to 70": torch.linspace(-80, 70, 64),
    "all at -80": torch.full((64,), -80.0),
    "all at 80": torch.full((64,), 80.0),
    "far beyond": torch.linspace(-1000, 900, 64),
}


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("model", ["conv", "mlp"])
def test_a_discriminator_sure_of_itself_costs_no_accuracy_in_float32(model, logits):
    # Where real and fake nearly cancel, rounding is what is left for either order.
    assert off("one_stage", model, logits) <= max(1e-5, 2 * off("simultaneous", model, logits))
