"""Two pairs of update orders that look different and are the same computation, and their references."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from common.losses import discriminator_loss, generator_loss
from scripts import gan_detach, gan_generator_first, gan_retain_graph, gan_simultaneous

STEPS = 20
pytestmark = pytest.mark.numerics


def networks(dtype):
    """A small G and D of linear and convolutional layers, the same at every call."""
    torch.manual_seed(0)
    generator = nn.Sequential(
        nn.Linear(6, 4 * 4 * 4),
        nn.ReLU(),
        nn.Unflatten(1, (4, 4, 4)),
        nn.ConvTranspose2d(4, 1, kernel_size=4, stride=2, padding=1),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 6, kernel_size=4, stride=2, padding=1),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Flatten(),
        nn.Linear(6 * 4 * 4, 8),
        nn.LeakyReLU(0.2),
        nn.Linear(8, 1),
    )
    return generator.to(dtype), discriminator.to(dtype)


def train(train_step, dtype):
    """Weights and optimizer states, flat, and every step's returned losses, after STEPS steps of Adam.

    With an eps of 1e-3: at 1e-8 Adam makes a rounding of 1e-17 in a gradient that is nothing else one of 1e-12.
    """
    generator, discriminator = networks(dtype)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999), eps=1e-3)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999), eps=1e-3)
    draws = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(STEPS):
        real = torch.rand(8, 1, 8, 8, generator=draws).to(dtype) * 2 - 1
        z = torch.randn(8, 6, generator=draws).to(dtype)
        logs = train_step(generator, discriminator, optimizer_g, optimizer_d, real, z)
        losses += [logs["d_loss"], logs["g_loss"]]
    states = [
        value
        for optimizer in (optimizer_g, optimizer_d)
        for state in optimizer.state_dict()["state"].values()
        for value in state.values()
    ]
    weights = [*generator.parameters(), *discriminator.parameters()]
    assert len(states) == 3 * len(weights)  # step, exp_avg, exp_avg_sq
    return [deepcopy(tensor.detach()) for tensor in [*weights, *states, *losses]]


def largest_difference(run, other):
    return max((a - b).abs().max().item() for a, b in zip(run, other, strict=True))


def test_retain_graph_and_detach_end_with_the_same_bits_in_float32():
    retained, detached = (train(script.train_step, torch.float32) for script in (gan_retain_graph, gan_detach))
    assert all(torch.equal(a, b) for a, b in zip(retained, detached, strict=True))


def frozen_step(fakes_for_d):
    """Both losses from the same weights, D frozen while G's loss goes backward, then both step."""

    def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        fake = generator(z)
        fake_logits = discriminator(fake)
        for_d = fake_logits if fakes_for_d == "shared" else discriminator(fake.detach())
        d_loss, g_loss = discriminator_loss(discriminator(real), for_d), generator_loss(fake_logits)
        optimizer_d.zero_grad()
        d_loss.backward(retain_graph=True)
        optimizer_g.zero_grad()
        discriminator.requires_grad_(False)
        g_loss.backward()
        discriminator.requires_grad_(True)
        optimizer_g.step()
        optimizer_d.step()
        return {"d_loss": d_loss.detach(), "g_loss": g_loss.detach()}

    return train_step


@pytest.mark.parametrize("fakes_for_d", ["shared", "detached"])
def test_simultaneous_is_both_losses_from_one_forward_with_d_frozen_for_the_second_backward(fakes_for_d):
    ours, reference = train(gan_simultaneous.train_step, torch.float64), train(frozen_step(fakes_for_d), torch.float64)
    assert largest_difference(ours, reference) < 1e-12


def autograd_grad_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """G first, then D on the fakes of the G before its step; every gradient asked for by name."""

    def update(network, optimizer, loss):
        weights = list(network.parameters())
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        optimizer.step()
        return loss.detach()

    fake = generator(z)
    data = fake.detach().clone()
    g_loss = update(generator, optimizer_g, generator_loss(discriminator(fake)))
    d_loss = discriminator_loss(discriminator(real), discriminator(data))
    return {"d_loss": update(discriminator, optimizer_d, d_loss), "g_loss": g_loss}


def test_generator_first_equals_a_reference_of_autograd_grad():
    ours = train(gan_generator_first.train_step, torch.float64)
    assert largest_difference(ours, train(autograd_grad_step, torch.float64)) < 1e-12


def test_generator_first_is_the_simultaneous_update():
    """G answers the D before its step, D the fakes of the G before its step: no order of steps can be told."""
    first, simultaneous = (train(s.train_step, torch.float64) for s in (gan_generator_first, gan_simultaneous))
    assert largest_difference(first, simultaneous) < 1e-12


def test_stepping_d_first_is_another_computation_so_the_comparisons_above_can_fail():
    d_first, simultaneous = (train(script.train_step, torch.float64) for script in (gan_detach, gan_simultaneous))
    assert largest_difference(d_first, simultaneous) > 1e-6


def test_without_freezing_d_the_reference_of_simultaneous_is_another_one(monkeypatch):
    reference = train(frozen_step("shared"), torch.float64)
    monkeypatch.setattr(nn.Module, "requires_grad_", lambda module, requires_grad=True: module)
    assert largest_difference(train(frozen_step("shared"), torch.float64), reference) > 1e-6
