"""One stage is the simultaneous update, whatever D's logits, and D's that it cannot serve are refused."""

import copy
import sys

import pytest
import torch
from torch import nn

from common.command_line import BadInput, launch
from common.cyclegan_models import patch_discriminator
from common.models import MODELS
from scripts import gan_one_stage, gan_simultaneous

TINY = torch.finfo(torch.float32).tiny


def networks(model, z_dim=8):
    torch.manual_seed(0)
    return MODELS[model]((1, 28, 28), z_dim)


def batch(count, z_dim=8):
    return torch.rand(count, 1, 28, 28) * 2 - 1, torch.randn(count, z_dim)


@pytest.mark.parametrize("model", MODELS)
def test_twenty_steps_of_adam_end_with_the_weights_of_the_simultaneous_update(model):
    ours = [network.double() for network in networks(model)]
    theirs = copy.deepcopy(ours)
    pairs = (gan_one_stage, ours), (gan_simultaneous, theirs)
    optimizers = [[torch.optim.Adam(network.parameters(), lr=2e-4) for network in pair] for _, pair in pairs]
    for _ in range(20):
        real, z = (tensor.double() for tensor in batch(4))
        results = [
            script.train_step(*pair, *adams, real, z) for (script, pair), adams in zip(pairs, optimizers, strict=True)
        ]
        assert results[0].keys() == results[1].keys()
        for key, value in results[0].items():
            torch.testing.assert_close(value, results[1][key], rtol=1e-12, atol=0)
    for one, other in zip(ours, theirs, strict=True):
        one, other = (torch.cat([p.detach().flatten() for p in network.parameters()]) for network in (one, other))
        assert (one - other).abs().max() <= 1e-12 * other.abs().max()


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


def off(model, logits):
    """Return the worst relative difference between a parameter's float32 gradient and the float64 reference."""
    generator, discriminator = networks(model)
    with torch.no_grad():
        for p in discriminator.parameters():
            p *= 0.3  # small derivatives, as a D that is sure of itself may have
    pair = generator, Steered(discriminator, logits)
    real, z = batch(len(logits))
    reference = copy.deepcopy(pair)
    reference = gradients(gan_simultaneous.train_step, [n.double() for n in reference], real.double(), z.double())
    ours = gradients(gan_one_stage.train_step, pair, real, z)
    assert all(p.isfinite().all() for p in ours)
    # What is below the smallest normal float32 is not representable.
    return max(((p - q).norm() - TINY) / q.norm().clamp(min=TINY) for p, q in zip(ours, reference, strict=True))


LOGITS = {
    "from -80 to 80": torch.linspace(-80, 80, 64),
    "all at -80": torch.full((64,), -80.0),
    "all at 80": torch.full((64,), 80.0),
    "all at 0": torch.zeros(64),
    "far beyond": torch.linspace(-1000, 1000, 64),
}


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("model", MODELS)
def test_a_discriminator_sure_of_itself_costs_no_accuracy_in_float32(model, logits):
    assert off(model, logits) <= 1e-5


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("model", MODELS)
def test_what_the_step_itself_computes_in_float32_is_accurate_to_1e_5(model, logits):
    generator, discriminator = (network.double() for network in networks(model))
    real, z = (tensor.double() for tensor in batch(len(logits)))
    pairs = [(generator, Steered(discriminator, values)) for values in (logits, logits.double())]
    ours = gradients(gan_one_stage.train_step, pairs[0], real, z)  # the logits, and what is made of them, are float32
    reference = gradients(gan_simultaneous.train_step, pairs[1], real, z)
    for p, q in zip(ours, reference, strict=True):
        assert p.isfinite().all()
        # Where real and fake cancel to exactly 0, a relative error says nothing: rounding in float64 may be left.
        assert (p - q).norm() - TINY <= (1e-5 * q.norm().clamp(min=TINY) if q.any() else 1e-15)


def test_the_scale_is_what_saves_the_gradients_from_underflow(monkeypatch):
    monkeypatch.setattr(gan_one_stage, "SCALE", 1.0)
    assert off("mlp", LOGITS["all at -80"]) > 1e-4


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_logit_a_sample_may_come_in_any_shape(shape):
    generator, discriminator = networks("mlp")
    real, z = batch(3)
    expected = gradients(gan_one_stage.train_step, (generator, discriminator), real, z)
    reshaped = generator, nn.Sequential(*discriminator, nn.Flatten(0), nn.Unflatten(0, (3, *shape)))
    gan_one_stage.check(reshaped[1], real)
    for p, q in zip(gradients(gan_one_stage.train_step, reshaped, real, z), expected, strict=True):
        assert p.equal(q)


@pytest.mark.parametrize("model", MODELS)
def test_our_discriminators_pass_the_check_unchanged(model):
    discriminator = networks(model)[1]
    before = copy.deepcopy(discriminator.state_dict())
    gan_one_stage.check(discriminator, batch(2)[0])
    assert all(value.equal(before[name]) for name, value in discriminator.state_dict().items())
    assert all(p.grad is None for p in discriminator.parameters())


class BatchDeviation(nn.Module):
    """Adds how much the batch varies to every sample, as Karras et al. (2018) do against mode collapse."""

    def forward(self, images):
        return images + images.std(0).mean()


def head(*layers):
    return nn.Sequential(nn.Conv2d(1, 4, 4, 4), *layers, nn.Flatten(), nn.Linear(4 * 49, 1))


REFUSED = {
    "batch normalisation": (head(nn.Sequential(nn.ReLU(), nn.BatchNorm2d(4))), r"layer 1\.1 is a BatchNorm2d"),
    "a logit for each patch": (patch_discriminator(1, 4, 2), r"shape \(2, 1, 5, 5\) from 2 images"),
    "one logit for all": (nn.Sequential(head(), nn.Flatten(0), nn.Linear(2, 1)), r"shape \(1,\) from 2 images"),
    "two logits a sample": (nn.Sequential(nn.Flatten(), nn.Linear(784, 2)), r"shape \(2, 2\) from 2 images"),
    "a look across the batch": (head(BatchDeviation()), "depends on the other images"),
}


@pytest.mark.parametrize(("discriminator", "words"), REFUSED.values(), ids=REFUSED)
def test_a_discriminator_that_one_stage_cannot_serve_is_refused(discriminator, words):
    with pytest.raises(BadInput, match=words):
        gan_one_stage.check(discriminator, batch(2)[0])


def test_the_refusal_comes_before_training_in_one_line(tmp_path, monkeypatch, capsys):
    refused = REFUSED["batch normalisation"][0]
    monkeypatch.setitem(MODELS, "mlp", lambda shape, z_dim: (nn.Linear(z_dim, 1), refused))
    monkeypatch.setattr(sys, "argv", ["gan_one_stage", "--model", "mlp", "--runs-dir", str(tmp_path / "runs")])
    with pytest.raises(SystemExit) as exit:
        launch(gan_one_stage.main, gan_one_stage.GanOptions)
    assert exit.value.code == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "1.1 is a BatchNorm2d" in printed.err
    assert not (tmp_path / "runs").exists()
