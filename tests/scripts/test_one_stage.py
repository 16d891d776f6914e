"""One stage is the simultaneous update, however large D's logits are, and D's that it cannot serve are refused."""

import copy

import pytest
import torch
from helpers import module_of
from torch import nn

from common.cyclegan_models import patch_discriminator
from common.models import MODELS
from common.per_sample import require_per_sample
from scripts import gan_one_stage, gan_simultaneous

TINY = torch.finfo(torch.float32).tiny
pytestmark = pytest.mark.numerics


def networks(model, z_dim=8):
    torch.manual_seed(0)
    return MODELS[model]((1, 28, 28), z_dim)


def batch(count, z_dim=8):
    return torch.rand(count, 1, 28, 28) * 2 - 1, torch.randn(count, z_dim)


class Steered(nn.Module):
    """A discriminator with the logits that one wants and the derivatives that it has."""

    def __init__(self, network, logits):
        super().__init__()
        self.network = network
        self.register_buffer("logits", logits)

    def forward(self, images):
        logits = self.network(images)
        return (logits - logits.detach() + self.logits.view_as(logits)).to(self.logits.dtype)


def gradients(train_step, networks, real, z):
    generator, discriminator = networks = copy.deepcopy(networks)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in networks]
    result = train_step(generator, discriminator, *optimizers, real, z)
    assert all(value.isfinite() for value in result.values())
    return [p.grad.double() for network in networks for p in network.parameters()]


def off(model, logits, train_step=gan_one_stage.train_step):
    """Return the relative difference between a network's gradient in float32 and in float64, of the worse network.

    Of a network as a whole: the gradient of a bias before a normalisation is what rounding leaves of zero, and relative
    to itself anything.
    """
    generator, discriminator = networks(model)
    with torch.no_grad():
        for p in discriminator.parameters():
            p *= 0.3  # small derivatives, as a D that is sure of itself may have
    pair = generator, Steered(discriminator, logits)
    real, z = batch(len(logits))
    reference = copy.deepcopy(pair)
    reference = gradients(gan_simultaneous.train_step, [n.double() for n in reference], real.double(), z.double())
    ours = gradients(train_step, pair, real, z)
    assert all(p.isfinite().all() for p in ours)
    count = len(list(generator.parameters()))
    worst = 0.0
    # What is below the smallest normal float32 is not representable. In D's gradient, each of 64 fakes may count up to
    # 2^-64 too much; the derivatives of a logit of this D have a norm below 100.
    for part, floor in (slice(count), TINY), (slice(count, None), 64 * 100 * 2.0**-64):
        p, q = (torch.cat([one.flatten() for one in of[part]]) for of in (ours, reference))
        worst = max(worst, (((p - q).norm() - floor) / q.norm().clamp(min=floor)).item())
    return worst


# Not symmetric: the gradients of real and fake would cancel in D's last bias, and what is left be rounding.
LOGITS = {
    "from -80 to 70": torch.linspace(-80, 70, 64),
    "all at -80": torch.full((64,), -80.0),
    "all at 80": torch.full((64,), 80.0),
    "all at 0": torch.zeros(64),
    "far beyond": torch.linspace(-1000, 900, 64),
}


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("model", MODELS)
def test_a_discriminator_sure_of_itself_costs_no_accuracy_in_float32(model, logits):
    # Where real and fake nearly cancel, rounding is what is left for either order.
    assert off(model, logits) <= max(1e-5, 2 * off(model, logits, gan_simultaneous.train_step))


def test_the_smallest_derivative_is_what_saves_the_gradients_from_underflow(monkeypatch):
    monkeypatch.setattr(gan_one_stage, "SMALLEST", TINY)
    assert off("mlp", LOGITS["all at -80"]) > 1e-4


def test_hooks_on_the_weights_of_the_discriminator_see_the_true_gradients():
    pair = [network.double() for network in networks("mlp")]
    real, z = (tensor.double() for tensor in batch(4))
    seen = []
    for step in (gan_one_stage.train_step, gan_simultaneous.train_step):
        hooked = copy.deepcopy(pair)
        for weight in hooked[1].parameters():
            weight.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))
        optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in hooked]
        step(*hooked, *optimizers, real, z)
        seen.append(torch.cat([weight.grad.flatten() for weight in hooked[1].parameters()]))
    assert seen[0].abs().max() == 1e-3  # so that something was clamped
    torch.testing.assert_close(*seen, rtol=1e-12, atol=1e-18)


class BatchDeviation(nn.Module):
    """Adds how much the batch varies to every sample, as Karras et al. (2018) do against mode collapse."""

    def forward(self, images):
        return images + images.std(0).mean()


class OwnBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation that is of none of PyTorch's public classes."""

    def _check_input_dim(self, features):
        pass


class FunctionalBatchNorm(nn.Module):
    """Batch normalisation that is no layer."""

    def forward(self, features):
        return nn.functional.batch_norm(features, None, None, training=True)


def head(*layers):
    return nn.Sequential(nn.Conv2d(1, 4, 4, 4), *layers, nn.Flatten(), nn.Linear(4 * 49, 1))


REFUSED = {
    "batch normalisation": (head(nn.ReLU(), nn.BatchNorm2d(4)), "depends on the other samples"),
    "without running statistics": (head(nn.BatchNorm2d(4, track_running_stats=False)).eval(), "depends on the other"),
    "of a class of one's own": (head(OwnBatchNorm(4)), "depends on the other samples"),
    "by a function": (head(FunctionalBatchNorm()), "depends on the other samples"),
    "a logit for each patch": (patch_discriminator(1, 4, 2), r"gives \(3, 1, 5, 5\) for 3 samples"),
    "one logit for all": (nn.Sequential(head(), nn.Flatten(0), nn.Linear(3, 1)), r"gives \(1,\) for 3 samples"),
    "two logits a sample": (nn.Sequential(nn.Flatten(), nn.Linear(784, 2)), r"gives \(3, 2\) for 3 samples"),
    "a look across the batch": (head(BatchDeviation()), "depends on the other samples"),
}


@pytest.mark.parametrize(("discriminator", "words"), REFUSED.values(), ids=REFUSED)
def test_the_step_refuses_a_discriminator_that_it_cannot_serve_before_it_changes_a_weight(discriminator, words):
    pair = networks("mlp")[0], discriminator
    before = copy.deepcopy([network.state_dict() for network in pair])
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    for _ in range(2):  # also the second time
        with pytest.raises(ValueError, match=words):
            gan_one_stage.train_step(*pair, *optimizers, *batch(3))
    for network, state in zip(pair, before, strict=True):
        for name, value in network.named_parameters():
            assert value.equal(state[name])


@pytest.mark.parametrize("script", ["gan_one_stage", "gan_r3", "gan_wgan_gp"])
def test_a_last_layer_that_starts_at_zero_hides_a_look_across_the_batch_for_a_step(script):
    train_step = module_of(script).train_step
    generator, discriminator = networks("mlp")[0], head(BatchDeviation())
    nn.init.zeros_(discriminator[-1].weight)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in (generator, discriminator)]
    train_step(generator, discriminator, *optimizers, *batch(3))
    with pytest.raises(ValueError, match="depends on the other samples"):
        train_step(generator, discriminator, *optimizers, *batch(3))


def test_autocast_to_float16_is_refused_whatever_the_logits_are():
    pair = networks("mlp")[0], head()
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    with torch.autocast("cpu", torch.float16), pytest.raises(ValueError, match="underflow in float16"):
        gan_one_stage.train_step(*pair, *optimizers, *batch(3))


def test_batch_normalisation_in_evaluation_mode_is_none_and_is_let_through():
    pair = networks("mlp")[0], head(nn.BatchNorm2d(4)).eval()
    gradients(gan_one_stage.train_step, pair, *batch(3))


def test_the_look_for_dependence_changes_neither_the_discriminator_nor_the_random_numbers():
    discriminator = head(nn.Dropout(0.5), nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 4, 1)))
    discriminator[0].eval()  # a mode of its own, to be kept
    state, modes = copy.deepcopy(discriminator.state_dict()), [m.training for m in discriminator.modules()]
    real, _ = batch(3)
    drawn = torch.get_rng_state()
    require_per_sample(discriminator, real)
    assert torch.get_rng_state().equal(drawn)
    assert [m.training for m in discriminator.modules()] == modes
    assert all(value.equal(state[name]) for name, value in discriminator.state_dict().items())
