"""Training steps that waste nothing get no finding, whatever form they take."""

import pytest
import torch
from audited import D_ONLY, G_ONLY, audit_of, batch, cells, found, make_networks
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")


def accumulated(generator, discriminator, optimizer_g, optimizer_d, real, z):
    for network, optimizer, data in ((generator, optimizer_g, z), (discriminator, optimizer_d, real)):
        optimizer.zero_grad()
        for part in data.chunk(3):
            network(part).square().mean().backward()
        optimizer.step()


def cleared_in_place(generator, discriminator, optimizer_g, optimizer_d, real, z):
    discriminator(real).square().mean().backward()
    optimizer_d.step()
    optimizer_d.zero_grad(set_to_none=False)
    generator(z).square().mean().backward()
    optimizer_g.step()
    generator.zero_grad(set_to_none=False)


def cleared_by_hand(generator, discriminator, optimizer_g, optimizer_d, real, z):
    discriminator(real).square().mean().backward()
    optimizer_d.step()
    generator(z).square().mean().backward()
    optimizer_g.step()
    for parameter in discriminator.parameters():
        parameter.grad.data.zero_()  # the way of old code; it moves no version counter
    for parameter in generator.parameters():
        parameter.grad = None


def clipped_and_scaled(generator, discriminator, optimizer_g, optimizer_d, real, z):
    scaler = torch.amp.GradScaler("cpu")
    for network, optimizer, data in ((generator, optimizer_g, z), (discriminator, optimizer_d, real)):
        optimizer.zero_grad()
        scaler.scale(network(data).square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(network.parameters(), 1e-3)
        scaler.step(optimizer)
        scaler.update()


def penalised(generator, discriminator, optimizer_g, optimizer_d, real, z):
    real = real.clone().requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
    with torch.no_grad():
        fake = generator(z)
    optimizer_d.zero_grad()
    ((slope.norm(dim=1) - 1).square().mean() + discriminator(fake).mean()).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    generator(z).square().mean().backward()
    optimizer_g.step()


def perceptual(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """A frozen judge without an optimizer; the discriminator plays it, its optimizer is not there."""
    discriminator.requires_grad_(False)
    optimizer_d.param_groups.clear()
    optimizer_g.zero_grad()
    discriminator(generator(z)).square().mean().backward()
    optimizer_g.step()


RIGHT = {
    accumulated: [G_ONLY] * 3 + [D_ONLY] * 3,
    cleared_in_place: [D_ONLY, G_ONLY],
    cleared_by_hand: [D_ONLY, G_ONLY],
    clipped_and_scaled: [G_ONLY, D_ONLY],
    penalised: [D_ONLY, G_ONLY],
    perceptual: [G_ONLY],
}


@pytest.mark.parametrize("train_step", RIGHT)
def test_right_forms_get_no_finding(train_step):
    audit = audit_of(train_step)
    assert not audit.findings
    assert cells(audit) == RIGHT[train_step] * 3


def test_gradients_of_zero_are_not_taken_for_cleared_ones_when_clipped_or_accumulated():
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            F.relu(network(torch.ones(1, 2)) - 100).sum().backward()  # a hinge that holds
            network(torch.ones(1, 2)).mul(0).sum().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
    assert cells(audit) == [("used",)] * 4
    assert not audit.findings


def test_networks_under_one_optimizer_are_one_player():
    a_to_b, b_to_a = nn.Linear(3, 3), nn.Linear(3, 3)
    optimizer = torch.optim.Adam([*a_to_b.parameters(), *b_to_a.parameters()])
    with GradientAudit(a_to_b=a_to_b, b_to_a=b_to_a) as audit:
        b_to_a(a_to_b(torch.ones(2, 3))).sum().backward()
        optimizer.step()
    assert cells(audit) == [("used", "used")]
    assert not audit.findings


def test_optimizers_of_one_network_are_one_player():
    generator, _ = make_networks()
    body, head = (torch.optim.SGD(generator[i].parameters(), lr=0.1) for i in (0, 2))
    with GradientAudit(generator=generator) as audit:
        generator(batch()[1]).sum().backward()
        body.step()
        head.step()
    assert cells(audit) == [("used",)]
    assert not audit.findings


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_grad_scaler_skips_uses_nothing(fused):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu")
    with GradientAudit(network=network) as audit:
        for factor in (float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale(network(torch.ones(1, 2)).mul(factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert cells(audit) == [("wasted",), ("used",)]
    assert found(audit) == {("wasted", ("network",))}


@pytest.mark.parametrize("by_name", [False, True])
def test_closures_use_every_gradient_they_compute(by_name):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=4)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = (network(torch.ones(1, 2)) - 3).square().sum()
        loss.backward()
        calls.append(loss)
        return loss

    with GradientAudit(network=network) as audit:
        for _ in range(2):
            optimizer.step(closure=closure) if by_name else optimizer.step(closure)
    assert cells(audit) == [("used",)] * len(calls)
    assert not audit.findings


def test_an_optimizer_inside_the_backward_pass_uses_the_pass():
    network = nn.Linear(2, 1)
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in network.parameters()}

    def step_at_once(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(step_at_once)
    with GradientAudit(network=network) as audit:
        for _ in range(2):
            network(torch.ones(1, 2)).sum().backward()
    assert cells(audit) == [("used",)] * 2
    assert not audit.findings


def test_gradients_of_autograd_grad_that_become_dot_grad_are_those_of_a_pass():
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        for parameter, grad in zip(
            network.parameters(),
            torch.autograd.grad(network(torch.ones(1, 2)).sum(), tuple(network.parameters())),
            strict=True,
        ):
            parameter.grad = grad
        optimizer.step()
    assert [p.cells for p in audit.passes] == [{"network": "used"}]
    assert not audit.findings


def test_a_gradient_replaced_by_another_tensor_was_cleared():
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        network(torch.ones(1, 2)).sum().backward()
        for parameter in network.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert cells(audit) == [("wasted",)]
    assert found(audit) == {("wasted", ("network",))}


def test_sparse_gradients_create_graph_and_reentrant_checkpoints():
    network = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            hidden = network[0](torch.tensor([1, 2]))
            checkpoint(network[1], hidden, use_reentrant=True).sum().backward()
            optimizer.step()
        optimizer.zero_grad()
        with pytest.warns(UserWarning, match="create_graph"):
            network[1](torch.ones(1, 2)).square().sum().backward(create_graph=True)
        optimizer.step()
    assert cells(audit) == [("used",)] * 3
    assert not audit.findings


def test_an_uninitialised_lazy_network_is_no_obstacle():
    lazy, eager = nn.LazyLinear(1), nn.Linear(2, 2)
    with GradientAudit(lazy=lazy, eager=eager) as audit:
        eager(torch.ones(1, 2)).sum().backward()
        lazy(eager(torch.ones(1, 2))).sum().backward()
    assert cells(audit) == [("-", "wasted"), ("wasted", "wasted")]
