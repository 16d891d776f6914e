"""What the audit makes of gradients, steps and optimizers in forms that the museum's loops do not have."""

import pytest
import torch
from audited import cells
from torch import nn

from gradient_audit import GradientAudit
from gradient_audit.watch.session import WITHOUT_STEP

pytestmark = pytest.mark.usefixtures("few_objects")


@pytest.fixture
def network():
    return nn.Linear(2, 1)


@pytest.fixture
def optimizer(network):
    return torch.optim.SGD(network.parameters(), lr=0.1)


STEPS_BY_HAND = {
    "assigned": "p.data = p.data - 0.1 * p.grad",
    "copied": "p.data.copy_(p.data - 0.1 * p.grad)",
    "out": "torch.sub(p.data, p.grad, alpha=0.1, out=p.data)",
    "lists": "torch._foreach_add_([p.data], [p.grad], alpha=-0.1)",
}
TURNS = {
    f"step by hand: {name}": f"network.zero_grad()\nloss.backward()\nfor p in network.parameters():\n    {step}"
    for name, step in STEPS_BY_HAND.items()
}
TURNS["cleared by hand"] = """
loss.backward()
optimizer.step()
network.weight.grad.data.zero_()  # the way of old code; it moves no version counter
network.bias.grad = None
"""
TURNS["clamped, and assigned"] = """
network.bias.grad = None
loss.backward(inputs=[network.bias], retain_graph=True)
network.bias.grad = network.bias.grad.clamp(-0.1, 0.1)
(network.weight.grad,) = torch.autograd.grad(loss, network.weight)
optimizer.step()
"""


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_gradients_are_used_also_after_the_passes_watched_in_detail(network, optimizer, turn):
    names = {"torch": torch, "network": network, "optimizer": optimizer}
    with GradientAudit(network=network) as audit:
        for _ in range(WITHOUT_STEP + 3):
            exec(turn, names | {"loss": network(torch.ones(1, 2)).sum()})
    assert {*cells(audit)} == {("used",)}
    assert len(cells(audit)) >= WITHOUT_STEP + 3
    assert not audit.findings and not audit.unjudged


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.d, self.scale = nn.Linear(2, 2), nn.Linear(2, 1), nn.Parameter(torch.ones(1))


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (lambda both: {"gan": both}, ["gan.g", "gan.d", "gan (itself)"]),
        (lambda both: {"gan": both, "d": both.d}, ["gan.g", "gan (itself)", "d"]),
        (lambda both: {"g": both.g, "d": both.d}, ["g", "d"]),
    ],
)
def test_a_named_module_that_holds_both_players_is_judged_as_its_parts(given, columns):
    both = Both()
    optimizer_g = torch.optim.SGD([*both.g.parameters(), both.scale], 0.1)
    optimizer_d = torch.optim.SGD(both.d.parameters(), 0.1)
    with GradientAudit(**given(both)) as audit:
        for _ in range(3):
            optimizer_g.zero_grad()
            optimizer_d.zero_grad()
            fake = both.g(torch.randn(4, 2)) * both.scale
            (both.d(fake.detach()).exp().mean() + both.d(torch.randn(4, 2)).neg().exp().mean()).backward()
            both.d(fake).neg().exp().mean().backward()  # D's gradients of this loss, too, are in its step
            optimizer_d.step()
            optimizer_g.step()
    assert list(audit.networks) == columns
    assert [finding.kind for finding in audit.findings if finding.severity == "error"] == ["mixed"]


def test_a_network_that_gets_no_gradient_after_the_first_step_is_asked_about_also_beside_others_of_its_optimizer():
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for times, is_asked in ((6, False), (7, True)):
        first.requires_grad_(True)
        with GradientAudit(first=first, second=second) as audit:
            for _ in range(times):
                optimizer.zero_grad()
                second(first(torch.ones(1, 2))).sum().backward()
                optimizer.step()
                first.requires_grad_(False)
        questions = [(f.kind, f.networks) for f in audit.findings if f.severity == "question"]
        assert questions == ([("unreached", ("first",))] if is_asked else [])


def test_a_fused_step_that_grad_scaler_skips_uses_nothing(network):
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cpu")
    with GradientAudit(network=network) as audit:
        for factor in (float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale(network(torch.ones(1, 2)).mul(factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert cells(audit) == [("read",), ("used",)]
    assert not audit.findings


def test_gradients_that_nothing_is_seen_to_use_are_not_judged(network):
    with GradientAudit(network=network) as audit:
        network(torch.ones(1, 2)).sum().backward()
    assert cells(audit) == [("wasted",)] and audit.verdict.startswith("Not judged: no optimizer was seen to step")


def test_of_a_block_those_lines_are_not_reached_that_it_or_what_it_calls_leaves_out(network):
    def run(twice):
        network(torch.ones(1, 2)).sum().backward()
        if twice:
            network(torch.ones(1, 2)).mean().backward()

    with GradientAudit(network=network) as audit:
        run(twice=False)
        if cells is None:
            network(torch.ones(1, 2)).mul(2).sum().backward()
    network(torch.ones(1, 2)).sum().backward()
    first = run.__code__.co_firstlineno
    places = [f"test_forms_of_training.py:{first + rows}" for rows in (3, 8)]
    assert f"Not reached: {places[0]} and {places[1]}." in audit.verdict  # and no option of the command line


def test_an_audit_without_names_finds_the_networks_of_its_block_and_refuses_older_ones(network):
    with GradientAudit() as audit:
        other = nn.Linear(2, 1)
        other(torch.ones(1, 2)).sum().backward()
    assert [*audit.networks] == ["other"]
    with pytest.raises(TypeError, match="name it"), GradientAudit():
        network(torch.ones(1, 2)).sum().backward()
