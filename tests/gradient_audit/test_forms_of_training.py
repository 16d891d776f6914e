"""What the audit makes of gradients, steps and optimizers in forms that the museum's loops do not have."""

import pytest
import torch
from audited import cells, found
from torch import nn
from torch.nn import functional as F

from gradient_audit import GradientAudit
from gradient_audit.watch.session import DETAILED

pytestmark = pytest.mark.usefixtures("few_objects")


@pytest.fixture
def network():
    return nn.Linear(2, 1)


@pytest.fixture
def optimizer(network):
    return torch.optim.SGD(network.parameters(), lr=0.1)


def test_gradients_may_be_cleared_by_hand_also_after_the_passes_watched_in_detail(network, optimizer):
    with GradientAudit(network=network) as audit:
        for _ in range(DETAILED + 3):
            network(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            network.weight.grad.data.zero_()  # the way of old code; it moves no version counter
            network.bias.grad = None
    assert cells(audit) == [("used",)] * (DETAILED + 3)
    assert not audit.findings


def test_gradients_of_zero_are_not_taken_for_cleared_ones_when_clipped_or_accumulated(network, optimizer):
    with GradientAudit(network=network) as audit:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            F.relu(network(torch.ones(1, 2)) - 100).sum().backward()  # a hinge that holds
            network(torch.ones(1, 2)).mul(0).sum().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
    assert cells(audit) == [("used",)] * 4
    assert found(audit) == {("unreached", ("network",))}  # as a question: they are zero at each step


def test_networks_that_share_a_layer_under_one_optimizer_are_one_player(network):
    first, second = nn.Sequential(nn.Linear(2, 2), network), nn.Sequential(nn.Linear(2, 2), network)
    optimizer = torch.optim.SGD({*first.parameters(), *second.parameters()}, lr=0.1)
    with GradientAudit(first=first, second=second) as audit:
        (first(torch.ones(1, 2)) + second(torch.ones(1, 2))).sum().backward()
        optimizer.step()
    assert cells(audit) == [("used", "used")]
    assert not audit.findings


def test_a_fused_step_that_grad_scaler_skips_uses_nothing(network):
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cpu")
    with GradientAudit(network=network) as audit:
        for factor in (float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale(network(torch.ones(1, 2)).mul(factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert cells(audit) == [("wasted",), ("used",)]
    assert not audit.findings


def test_an_optimizer_inside_the_backward_pass_uses_the_pass(network):
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


def test_gradients_may_be_clamped_or_assigned_also_after_the_passes_watched_in_detail(network, optimizer):
    with GradientAudit(network=network) as audit:
        for _ in range(DETAILED + 3):
            network.bias.grad = None
            network(torch.ones(1, 2)).sum().backward(inputs=[network.bias])
            network.bias.grad = network.bias.grad.clamp(-0.1, 0.1)
            (network.weight.grad,) = torch.autograd.grad(network(torch.ones(1, 2)).sum(), network.weight)
            optimizer.step()
    assert not audit.findings


def test_an_uninitialised_lazy_network_is_no_obstacle():
    lazy, eager = nn.LazyLinear(1), nn.Linear(2, 2)
    with GradientAudit(lazy=lazy, eager=eager) as audit:
        eager(torch.ones(1, 2)).sum().backward()
        lazy(eager(torch.ones(1, 2))).sum().backward()
    assert cells(audit) == [("-", "wasted"), ("wasted", "wasted")]
