"""The audit tells where gradients go, is right about every form it is shown, and leaves no trace."""

import copy
import gc
import importlib
import inspect
import weakref
from pathlib import Path

import pytest
import torch
from helpers import module_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

torch_optimizer = importlib.import_module("torch.optim.optimizer")

from common.cyclegan_models import cyclegan_networks
from common.gradient_audit import GradientAudit, GradientFlowError
from common.images.pool import ImagePool
from common.losses import discriminator_loss, generator_loss
from common.models import mlp
from scripts import cyclegan, gan_one_stage

UPDATE_ORDERS = ["detach", "generator_first", "resample", "retain_graph", "simultaneous"]


def make_networks():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
    discriminator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return generator, discriminator


def make_all(optimizer=torch.optim.Adam):
    networks = make_networks()
    return *networks, *(optimizer(network.parameters(), lr=0.01) for network in networks)


def batch(seed=0):
    noise = torch.Generator().manual_seed(seed)
    return torch.randn(6, 4, generator=noise), torch.randn(6, 3, generator=noise)


def audit_of(train_step, *parts, steps=3):
    """The audit of a step with the signature of the training scripts."""
    generator, discriminator, *_ = parts = parts or make_all()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for step in range(steps):
            train_step(*parts, *batch(step))
    return audit


def cells(audit):
    """The table, cell by cell: a row for each pass."""
    return [tuple(p.cells.values()) for p in audit.passes]


def found(audit):
    """The findings as (name, networks)."""
    return {(finding.name, finding.networks) for finding in audit.findings}


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return f"{Path(__file__).name}:{start + next(i for i, line in enumerate(lines) if text in line)}"


# The update orders of the scripts, and the textbook forms of two of them.

D_ONLY, G_ONLY = ("-", "used"), ("used", "-")
TABLES = {
    "detach": [D_ONLY, G_ONLY],
    "generator_first": [G_ONLY, D_ONLY],
    "resample": [D_ONLY, G_ONLY],
    "retain_graph": [("wasted", "used"), ("used", "wasted")],
    "simultaneous": [D_ONLY, G_ONLY],
}


@pytest.mark.parametrize("order", UPDATE_ORDERS)
def test_table_of_every_script(order):
    audit = audit_of(module_of(f"gan_{order}").train_step)
    assert cells(audit) == TABLES[order] * 3
    assert [list(p.cells) for p in audit.passes] == [["generator", "discriminator"]] * 6
    wasteful = {("wasted", ("generator",)), ("wasted", ("discriminator",))}
    assert found(audit) == (wasteful if order == "retain_graph" else set())
    audit.check()


def test_table_of_one_stage():
    generator, discriminator = mlp((1, 2, 2), 3)
    optimizers = [torch.optim.Adam(network.parameters(), fused=True) for network in (generator, discriminator)]
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for _ in range(3):
            gan_one_stage.train_step(generator, discriminator, *optimizers, torch.rand(4, 1, 2, 2), torch.randn(4, 3))
    assert cells(audit) == [D_ONLY, G_ONLY] * 3
    assert not audit.findings


@pytest.mark.parametrize("identity_weight", [5.0, 0.0])
def test_table_of_cyclegan(identity_weight):
    names = "a_to_b", "b_to_a", "discriminator_a", "discriminator_b"
    networks = cyclegan_networks((1, 12, 12), width=2, blocks=1, halvings=2)
    optimizers = [
        torch.optim.Adam([p for network in pair for p in network.parameters()], fused=True)
        for pair in (networks[:2], networks[2:])
    ]
    pools = ImagePool(3), ImagePool(3)
    with GradientAudit(**dict(zip(names, networks, strict=True))) as audit:
        for _ in range(3):
            real_a, real_b = torch.rand(2, 2, 1, 12, 12)
            cyclegan.train_step(*networks, *optimizers, *pools, real_a, real_b, identity_weight=identity_weight)
    assert [list(p.cells) for p in audit.passes] == [list(names)] * 6
    assert cells(audit) == [("used", "used", "-", "-"), ("-", "-", "used", "used")] * 3
    assert not audit.findings


def textbook_detach(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    optimizer_d.zero_grad()
    discriminator_loss(discriminator(real), discriminator(fake.detach())).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    generator_loss(discriminator(fake)).backward()
    optimizer_g.step()


def textbook_generator_first(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    optimizer_g.zero_grad()
    generator_loss(discriminator(fake)).backward()
    optimizer_g.step()
    optimizer_d.zero_grad()
    discriminator_loss(discriminator(real), discriminator(fake.detach())).backward()
    optimizer_d.step()


@pytest.mark.parametrize("train_step", [textbook_detach, textbook_generator_first])
def test_textbook_forms_waste_the_gradients_of_d(train_step):
    audit = audit_of(train_step)
    rows = [D_ONLY, ("used", "wasted")]
    assert cells(audit) == (rows if train_step is textbook_detach else rows[::-1]) * 3
    (finding,) = audit.findings
    assert (finding.name, finding.networks, finding.wrong) == ("wasted", ("discriminator",), False)
    assert finding.lines == (line_of(train_step, "generator_loss(discriminator(fake)).backward()"),)
    assert "4 of the 4 parameters" in finding.what
    assert "3x" in finding.what
    audit.check()
    with pytest.raises(GradientFlowError, match="wasted"):
        audit.check(waste=True)


def test_gradients_left_over_at_the_end_are_wasted_and_it_is_said():
    """Of the last pass, no zero_grad() drops D's gradients."""
    (finding,) = audit_of(textbook_detach, steps=1).findings
    assert "left over" in finding.cure
    (finding,) = audit_of(textbook_detach, steps=2).findings
    assert "left over" not in finding.cure


# Wrong forms get their finding.


def not_frozen(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    optimizer_d.zero_grad()
    optimizer_g.zero_grad()
    discriminator(fake.detach()).square().mean().backward()
    discriminator(fake).square().mean().backward()
    optimizer_g.step()
    optimizer_d.step()


def frozen_for_g(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    optimizer_d.zero_grad()
    optimizer_g.zero_grad()
    discriminator(fake.detach()).square().mean().backward()
    loss = discriminator(fake).square().mean()
    discriminator.requires_grad_(False)  # after the forward pass: autograd looks when it accumulates
    loss.backward()
    discriminator.requires_grad_(True)
    optimizer_g.step()
    optimizer_d.step()


def test_d_stepping_on_the_loss_of_g_is_mixed():
    audit = audit_of(not_frozen)
    assert cells(audit) == [D_ONLY, ("used", "used")] * 3
    (finding,) = audit.findings
    assert (finding.name, finding.networks) == ("mixed", ("generator", "discriminator"))
    assert finding.lines == (line_of(not_frozen, "discriminator(fake).square()"),)
    with pytest.raises(GradientFlowError, match="mixed"):
        audit.check()
    assert cells(clean := audit_of(frozen_for_g)) == [D_ONLY, G_ONLY] * 3
    assert not clean.findings


def no_zero_grad(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    discriminator(fake.detach()).square().mean().backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    discriminator(fake).square().mean().backward(inputs=list(generator.parameters()))
    optimizer_g.step()


def test_forgotten_zero_grad_is_stale():
    audit = audit_of(no_zero_grad)
    assert cells(audit) == [D_ONLY, G_ONLY] * 3
    (finding,) = audit.findings
    assert (finding.name, finding.networks) == ("stale", ("discriminator",))
    assert finding.lines == tuple(line_of(no_zero_grad, text) for text in ("fake.detach()", "optimizer_d.step()"))
    assert not audit_of(no_zero_grad, steps=1).findings  # one step alone has nothing old


def test_zero_grad_after_backward_leaves_the_network_unreached():
    generator, _, optimizer, _ = make_all()
    with GradientAudit(generator=generator) as audit:
        for _ in range(2):
            generator(batch()[1]).sum().backward()
            optimizer.zero_grad()
            optimizer.step()
    assert cells(audit) == [("wasted",)] * 2
    assert found(audit) == {("unreached", ("generator",)), ("wasted", ("generator",))}


def test_detach_between_two_networks_of_one_optimizer_leaves_the_first_unreached():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for cut in (True, False):
        with GradientAudit(first=first, second=second) as audit:
            for _ in range(3):
                middle = first(torch.ones(2, 3))
                optimizer.zero_grad()
                second(middle.detach() if cut else middle).sum().backward()
                optimizer.step()
        assert cells(audit) == ([D_ONLY] if cut else [("used", "used")]) * 3
        assert found(audit) == ({("unreached", ("first",))} if cut else set())


def test_a_layer_that_forward_skips_is_unreached_by_name():
    network = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        network["used"](torch.ones(1, 2)).sum().backward()
        optimizer.step()
    (finding,) = audit.findings
    assert finding.name == "unreached"
    assert "2 of the 4 parameters (idle.weight, idle.bias)" in finding.what


def test_a_layer_left_out_of_the_optimizer_is_ownerless_and_its_gradients_are_counted_as_wasted():
    generator, _ = make_networks()
    optimizer = torch.optim.SGD(generator[2].parameters(), lr=0.1)
    with GradientAudit(generator=generator) as audit:
        generator(batch()[1]).sum().backward()
        optimizer.step()
    assert cells(audit) == [("used",)]  # the cell of a network in part used
    assert [finding.name for finding in audit.findings] == ["ownerless", "wasted"]
    assert all("2 of the 4 parameters (0.weight, 0.bias)" in finding.what for finding in audit.findings)


def test_an_optimizer_made_before_the_network_was_replaced_leaves_the_new_one_ownerless():
    generator, _, optimizer, _ = make_all()
    generator = copy.deepcopy(generator)
    with GradientAudit(generator=generator) as audit:
        generator(batch()[1]).sum().backward()
        optimizer.step()
    assert cells(audit) == [("wasted",)]
    assert found(audit) == {("ownerless", ("generator",)), ("wasted", ("generator",))}


def test_an_optimizer_that_did_not_step_yet_is_an_owner():
    audit = audit_of(lambda g, d, og, od, real, z: d(g(z)).sum().backward())
    assert cells(audit) == [("wasted", "wasted")] * 3
    assert {finding.name for finding in audit.findings} == {"wasted"}


def test_one_loss_for_two_players_is_mixed_and_the_cure_says_when_it_is_right():
    encoder, decoder, optimizer_e, optimizer_d = make_all()
    with GradientAudit(encoder=encoder, decoder=decoder) as audit:
        decoder(encoder(batch()[1])).sum().backward()
        optimizer_e.step()
        optimizer_d.step()
    (finding,) = audit.findings
    assert finding.name == "mixed"
    assert "autoencoder" in finding.cure


def test_without_any_optimizer_all_is_wasted_and_nothing_else():
    generator, discriminator = make_networks()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        discriminator(generator(batch()[1])).sum().backward()
    assert cells(audit) == [("wasted", "wasted")]
    assert {finding.name for finding in audit.findings} == {"wasted"}
    assert all("No optimizer stepped" in finding.cure for finding in audit.findings)
    audit.check()


# Right forms get none.


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
    optimizer_d.zero_grad()
    ((slope.norm(dim=1) - 1).square().mean() + discriminator(generator(z).detach()).mean()).backward()
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


def test_gradients_given_by_hand_belong_to_no_pass():
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
    assert not audit.passes
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


# It leaves no trace.


@pytest.mark.numerics
@pytest.mark.parametrize("order", UPDATE_ORDERS)
def test_a_step_under_audit_gives_the_same_bits(order):
    """An audit watches: the same operations run in the same order on the same shapes."""
    states = []
    for audited in (False, True):
        generator, discriminator, *optimizers = parts = make_all()
        torch.manual_seed(1)
        train_step = module_of(f"gan_{order}").train_step
        if audited:
            audit_of(train_step, *parts, steps=4)
        else:
            for step in range(4):
                train_step(*parts, *batch(step))
        states.append([*generator.parameters(), *discriminator.parameters()])
        states[-1] += [value for opt in optimizers for state in opt.state.values() for value in state.values()]
        states[-1] += [parameter.grad for parameter in states[-1][:8] if parameter.grad is not None]
        states[-1].append(torch.get_rng_state())
    assert len(states[0]) == len(states[1])
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def traces():
    hooks = torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks
    return torch.autograd.backward, *(dict(hook) for hook in hooks)


@pytest.mark.parametrize("raising", [False, True])
def test_everything_is_left_as_found(raising):
    generator, discriminator, *_ = parts = make_all()
    calls = []
    theirs = torch_optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("step"))
    generator[0].weight.register_post_accumulate_grad_hook(lambda _: calls.append("grad"))
    discriminator[0].weight.requires_grad_(False)
    before, error = traces(), ValueError("mine")
    try:
        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            textbook_detach(*parts, *batch())
            if raising:
                raise error
    except ValueError as caught:
        assert caught is error
    assert traces() == before
    parameters = [*generator.parameters(), *discriminator.parameters()]
    assert [len(parameter._post_accumulate_grad_hooks or ()) for parameter in parameters] == [1] + [0] * 7
    assert [parameter.requires_grad for parameter in parameters] == [True] * 4 + [False] + [True] * 3
    assert cells(audit) == [D_ONLY, ("used", "wasted")]
    assert calls == ["step", "grad", "step"]
    theirs.remove()


def test_a_pass_that_raises_is_in_the_table():
    generator, discriminator, _, optimizer_d = make_all()
    _, z = batch()
    before = traces()
    with pytest.raises(RuntimeError, match="inplace"), GradientAudit(generator=generator, d=discriminator) as audit:
        verdict = discriminator(generator(z))
        verdict.sum().backward(retain_graph=True)
        optimizer_d.step()
        verdict.mean().backward()
    assert [p.raised for p in audit.passes] == [False, True]
    assert "raised" in str(audit)
    assert traces() == before


def test_the_audit_keeps_no_gradient_alive():
    generator, discriminator, *_ = parts = make_all()
    with GradientAudit(generator=generator, discriminator=discriminator):
        textbook_detach(*parts, *batch())
        gradients = [weakref.ref(parameter.grad) for parameter in generator.parameters()]
        generator.zero_grad()
        assert not any(gradient() is not None for gradient in gradients)


def test_the_audit_keeps_no_network_busy_after_the_end():
    generator, discriminator, *_ = parts = make_all()
    audit = audit_of(textbook_detach, *parts)
    parameter = weakref.ref(generator[0].weight)
    del generator, discriminator, _, parts, audit.networks
    gc.collect()
    assert parameter() is None


def test_an_audit_inside_another_and_one_used_twice():
    generator, discriminator, *_ = parts = make_all()
    outer = GradientAudit(generator=generator)
    for _ in range(2):
        with outer, GradientAudit(discriminator=discriminator) as inner:
            textbook_detach(*parts, *batch())
        assert cells(outer) == [("-",), ("used",)]
        assert cells(inner) == [("used",), ("wasted",)]


# What is printed.


def test_the_table_names_lines_and_counts_passes_alike():
    audit = audit_of(textbook_detach)
    d_line, g_line = (line_of(textbook_detach, text) for text in ("fake.detach()", "generator_loss"))
    assert [p.where for p in audit.passes] == [d_line, g_line] * 3
    assert audit.passes[1].code == "generator_loss(discriminator(fake)).backward()"
    header, rule, first, second, *rest = str(audit).splitlines()
    assert [cell.strip() for cell in header.split("|")] == [
        "",
        "backward pass",
        "times",
        "generator",
        "discriminator",
        "",
    ]
    assert set(rule) == set("|- ")
    assert first.split()[1] == f"`{d_line}"
    assert first.split()[-7:] == ["|", "3x", "|", "-", "|", "used", "|"]
    assert second.split()[-7:] == ["|", "3x", "|", "used", "|", "wasted", "|"]
    assert len({len(line) for line in (header, rule, first, second)}) == 1
    assert rest == ["", f"- {audit.findings[0]}"]


def test_only_modules_are_networks():
    with pytest.raises(TypeError, match="generator is a int"):
        GradientAudit(generator=3)


# Any order of calls, against an account kept by hand.

ONE = st.integers(0, 2)  # a network, or an optimizer
CALLS = st.one_of(
    st.tuples(st.just("backward"), ONE, ONE, st.none() | ONE, st.none()),
    st.tuples(st.just("backward"), st.just(0), st.just(2), st.none() | ONE, st.sets(ONE, min_size=1)),
    st.tuples(st.just("backward"), st.just(0), st.just(2), st.none(), st.none()),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("zero"), ONE, st.booleans()),
    st.tuples(st.just("zero network"), ONE, st.booleans()),
    st.tuples(st.just("freeze"), ONE, st.booleans()),
    st.tuples(st.just("clip"), ONE),
)
# Which optimizer holds each of the six parameters, two of each network; None: no optimizer does.
OWNERS = st.sampled_from([(0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1), (0, 1, 0, 1, 0, 1)]) | st.tuples(
    *[st.none() | ONE] * 6
)


class ByHand:
    """The account of one run, kept from the calls themselves and from each pass computed alone."""

    def __init__(self, networks, owners):
        self.networks, self.owners = networks, owners  # owners: parameter -> index of its optimizer, or None
        self.parameters = [parameter for network in networks for parameter in network.parameters()]
        self.held = {p: {} for p in self.parameters}  # pass -> its part of the gradient
        self.reached, self.used, self.stale = [], [], set()
        self.last_step, self.asked, self.fed = {}, set(), set()

    def backward(self, loss, inputs):
        wanted = [p for p in self.parameters if p.requires_grad and (inputs is None or p in inputs)]
        alone = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        parts = {p: part for p, part in zip(wanted, alone, strict=True) if part is not None}
        for p, part in parts.items():
            self.held[p][len(self.reached)] = part
        self.reached.append(set(parts))
        self.used.append({})

    def step(self, optimizer):
        for p in self.parameters:
            if self.owners[p] != optimizer:
                continue
            total = sum(self.held[p].values()) if self.held[p] else torch.zeros_like(p)
            gradient = p.grad if p.grad is not None else torch.zeros_like(p)
            torch.testing.assert_close(gradient, total, rtol=1e-12, atol=1e-12)
            if p.requires_grad:
                self.asked.add(p)
            for number in self.held[p]:
                self.fed.add(p)
                self.used[number][p] = optimizer
                if number < self.last_step.get(optimizer, 0):
                    self.stale.add((optimizer, p))
        self.last_step[optimizer] = len(self.reached)

    def clip(self, parameters, factor):
        for p in parameters:
            self.held[p] = {number: part * factor for number, part in self.held[p].items()}

    def findings(self):
        of = [set(network.parameters()) for network in self.networks]
        yield from {("mixed", self.moved(n, of)) for n in range(len(self.used)) if self.is_mixed(n, of)}
        for optimizer in {optimizer for optimizer, _ in self.stale}:
            old = {p for by, p in self.stale if by == optimizer}
            yield "stale", tuple(f"n{i}" for i, mine in enumerate(of) if mine & old)
        ever = set().union(*self.reached)
        for i, mine in enumerate(of):
            if mine & (self.asked - self.fed):
                yield "unreached", (f"n{i}",)
            orphans = {p for p in mine if self.owners[p] is None and (p.requires_grad or p in ever)}
            if orphans and set(self.owners.values()) != {None}:
                yield "ownerless", (f"n{i}",)
            if any(mine & (reached - used.keys()) for reached, used in zip(self.reached, self.used, strict=True)):
                yield "wasted", (f"n{i}",)

    def moved(self, number, of):
        return tuple(f"n{i}" for i, mine in enumerate(of) if mine & self.used[number].keys())

    def is_mixed(self, number, of):
        """Whether two parameters moved by this pass are linked by no chain of one network or one optimizer."""
        used = self.used[number]
        if not used:
            return False
        linked = {next(iter(used))}
        while True:
            more = {
                p for p in used for q in linked if used[p] == used[q] or any(p in mine and q in mine for mine in of)
            }
            if more <= linked:
                return linked != set(used)
            linked |= more


@settings(max_examples=100, deadline=None)
@given(owners=OWNERS, calls=st.lists(CALLS, min_size=5, max_size=25))
def test_any_order_of_calls_against_an_account_by_hand(owners, calls):
    """A chain of three networks, any stretch of it, cut by detach() or not, under any distribution of optimizers."""
    torch.manual_seed(0)
    networks = [nn.Sequential(nn.Linear(2, 2), nn.Tanh()).double() for _ in range(3)]
    parameters = [parameter for network in networks for parameter in network.parameters()]
    owner = dict(zip(parameters, owners, strict=True))
    optimizers = {i: torch.optim.SGD([p for p in parameters if owner[p] == i], lr=0.01) for i in set(owners) - {None}}
    by_hand = ByHand(networks, owner)
    with GradientAudit(**{f"n{i}": network for i, network in enumerate(networks)}) as audit:
        for what, target, *rest in calls:
            if what == "backward":
                end, cut, inputs = rest
                hidden = torch.randn(3, 2, dtype=torch.double)
                for i in range(min(target, end), max(target, end) + 1):
                    hidden = networks[i](hidden.detach() if i == cut else hidden)
                if not hidden.requires_grad:
                    continue
                loss = hidden.square().sum()
                chosen = inputs and [p for i in inputs for p in networks[i].parameters() if p.requires_grad]
                if inputs is not None and not chosen:
                    continue
                by_hand.backward(loss, chosen and set(chosen))
                loss.backward(inputs=chosen)
            elif what == "step" and target in optimizers:
                by_hand.step(target)
                optimizers[target].step()
            elif what in ("zero", "zero network"):
                if what == "zero" and target not in optimizers:
                    continue
                mine = (
                    [p for p in parameters if owner[p] == target] if what == "zero" else networks[target].parameters()
                )
                (optimizers if what == "zero" else networks)[target].zero_grad(*rest)
                for p in mine:
                    by_hand.held[p].clear()
            elif what == "freeze":
                networks[target].requires_grad_(*rest)
            elif what == "clip":
                norm = nn.utils.clip_grad_norm_(networks[target].parameters(), 0.1)
                by_hand.clip(networks[target].parameters(), min(1.0, 0.1 / (norm.item() + 1e-6)))
    expected = [
        tuple(
            "used" if mine & used.keys() else "wasted" if mine & reached else "-"
            for mine in (set(network.parameters()) for network in networks)
        )
        for reached, used in zip(by_hand.reached, by_hand.used, strict=True)
    ]
    assert cells(audit) == expected
    assert found(audit) == set(by_hand.findings())
    assert not any(p.raised for p in audit.passes)
