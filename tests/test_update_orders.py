"""Every update order does what its name says: against a reference in float64 written with `torch.autograd.grad`."""

import copy
import importlib

import pytest
import torch
import torch.nn.functional as F

from common.models import MODELS, dcgan, mlp

ORDERS = ["retain_graph", "detach", "generator_first", "simultaneous", "resample", "one_stage"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
LR, BETAS = 1e-3, (0.5, 0.999)


def step_of(order):
    return importlib.import_module(f"scripts.gan_{order}").train_step


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=LR, betas=BETAS)


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
    result = step_of(order)(generator, discriminator, adam(generator), adam(discriminator), real, z)

    assert set(result) == {"d_loss", "g_loss", "d_real", "d_fake"}
    for value in result.values():
        assert value.ndim == 0
        assert not value.requires_grad
        assert value.device.type == device
        assert value.isfinite()
    assert 0 < result["d_real"] < 1
    assert 0 < result["d_fake"] < 1
    for old, network in zip(before, (generator, discriminator), strict=True):
        assert (old != weights(network)).any()
        assert all(p.grad is not None for p in network.parameters() if network is generator or order != "retain_graph")


class Reference:
    """Two networks and a hand-written Adam for each; gradients from `torch.autograd.grad` and nothing else."""

    def __init__(self, generator, discriminator):
        self.networks = {"g": generator, "d": discriminator}
        self.moments = {
            name: [(torch.zeros_like(p), torch.zeros_like(p)) for p in network.parameters()]
            for name, network in self.networks.items()
        }
        self.count = {"g": 0, "d": 0}

    def gradients(self, name, loss):
        return torch.autograd.grad(loss, list(self.networks[name].parameters()))

    def apply(self, name, gradients):
        self.count[name] += 1
        t, (b1, b2) = self.count[name], BETAS
        with torch.no_grad():
            for p, g, (m, v) in zip(self.networks[name].parameters(), gradients, self.moments[name], strict=True):
                m.copy_(b1 * m + (1 - b1) * g)
                v.copy_(b2 * v + (1 - b2) * g * g)
                p -= LR * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + 1e-8)

    def d_loss(self, real, fake):
        d = self.networks["d"]
        p_real, p_fake = d(real).sigmoid(), d(fake.detach()).sigmoid()
        halves = (
            F.binary_cross_entropy(p_real, torch.ones_like(p_real)),
            F.binary_cross_entropy(p_fake, torch.zeros_like(p_fake)),
        )
        return sum(halves) / 2, p_real.mean(), p_fake.mean()

    def g_loss(self, z):
        p_fake = self.networks["d"](self.networks["g"](z)).sigmoid()
        return F.binary_cross_entropy(p_fake, torch.ones_like(p_fake))

    def step(self, order, real, z):
        fake = self.networks["g"](z)
        if order in ("simultaneous", "one_stage"):
            d_loss, d_real, d_fake = self.d_loss(real, fake)
            g_loss = self.g_loss(z)
            d_gradients, g_gradients = self.gradients("d", d_loss), self.gradients("g", g_loss)
            self.apply("d", d_gradients)
            self.apply("g", g_gradients)
        elif order == "generator_first":
            g_loss = self.g_loss(z)
            self.apply("g", self.gradients("g", g_loss))
            d_loss, d_real, d_fake = self.d_loss(real, fake)
            self.apply("d", self.gradients("d", d_loss))
        else:
            d_loss, d_real, d_fake = self.d_loss(real, fake)
            self.apply("d", self.gradients("d", d_loss))
            g_loss = self.g_loss(torch.randn_like(z) if order == "resample" else z)
            self.apply("g", self.gradients("g", g_loss))
        return {"d_loss": d_loss, "g_loss": g_loss, "d_real": d_real, "d_fake": d_fake}


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("build", [mlp, dcgan])
@pytest.mark.parametrize("order", ORDERS)
def test_weights_and_results_agree_with_the_reference_in_float64(order, build, steps):
    torch.manual_seed(0)
    generator, discriminator = (network.double() for network in build((1, 28, 28), 8))
    reference = Reference(copy.deepcopy(generator), copy.deepcopy(discriminator))
    optimizers = adam(generator), adam(discriminator)
    for number in range(steps):
        torch.manual_seed(number)
        real, z = torch.rand(3, 1, 28, 28).double() * 2 - 1, torch.randn(3, 8).double()
        torch.manual_seed(1000 + number)
        result = step_of(order)(generator, discriminator, *optimizers, real, z)
        torch.manual_seed(1000 + number)
        expected = reference.step(order, real, z)
        for key, value in result.items():
            torch.testing.assert_close(value, expected[key].detach(), rtol=1e-12, atol=0)
    for name, network in (("g", generator), ("d", discriminator)):
        expected = weights(reference.networks[name])
        assert (weights(network) - expected).abs().max() <= 1e-12 * expected.abs().max()


@pytest.mark.parametrize("order", set(ORDERS) - {"resample"})
def test_a_step_draws_no_random_numbers(order):
    torch.manual_seed(0)
    generator, discriminator = MODELS["mlp"]((1, 28, 28), 8)
    before = torch.get_rng_state()
    step_of(order)(
        generator, discriminator, adam(generator), adam(discriminator), torch.zeros(2, 1, 28, 28), torch.ones(2, 8)
    )
    assert torch.equal(before, torch.get_rng_state())
