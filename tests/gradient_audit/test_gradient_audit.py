"""The audit tells where gradients go: every update order gets its table, every wrong form its finding."""

import copy

import pytest
import torch
from audited import (
    D_ONLY,
    G_ONLY,
    UPDATE_ORDERS,
    audit_of,
    batch,
    cells,
    found,
    line_of,
    make_all,
    make_networks,
    textbook_detach,
)
from helpers import module_of
from torch import nn

from common.cyclegan_models import cyclegan_networks
from common.images.pool import ImagePool
from common.losses import discriminator_loss, generator_loss
from common.models import mlp
from gradient_audit import GradientAudit, GradientFlowError
from scripts import cyclegan, gan_one_stage

pytestmark = pytest.mark.usefixtures("few_objects")

# The update orders of the scripts, and the textbook forms of two of them.

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
    assert (finding.kind, finding.networks, finding.severity) == ("wasted", ("discriminator",), "waste")
    assert finding.lines == (line_of(train_step, "generator_loss(discriminator(fake)).backward()"),)
    assert "all parameters" in finding.text
    assert "3x" in finding.text
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
    assert (finding.kind, finding.networks) == ("mixed", ("generator", "discriminator"))
    texts = "discriminator(fake).square()", "optimizer_d.step()"
    assert finding.lines == tuple(line_of(not_frozen, text) for text in texts)
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
    assert (finding.kind, finding.networks) == ("stale", ("discriminator",))
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
        assert found(audit) == ({("unreached", ("first",)), ("graph", ("first",))} if cut else set())


def test_a_layer_that_forward_skips_is_unreached_by_name():
    network = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with GradientAudit(network=network) as audit:
        network["used"](torch.ones(1, 2)).sum().backward()
        optimizer.step()
    (finding,) = audit.findings
    assert finding.kind == "unreached"
    assert "2 of the 4 parameters (idle.weight, idle.bias)" in finding.text


@pytest.mark.parametrize(("held", "kinds"), [(0, ["ownerless", "wasted"]), (2, ["unfrozen"])])
def test_last_layers_left_out_of_the_optimizer_are_ownerless_and_first_ones_may_be_a_backbone(held, kinds):
    generator, _ = make_networks()
    optimizer = torch.optim.SGD(generator[held].parameters(), lr=0.1)
    with GradientAudit(generator=generator) as audit:
        generator(batch()[1]).sum().backward()
        optimizer.step()
    assert cells(audit) == [("used",)]  # the cell of a network in part used
    assert [finding.kind for finding in audit.findings] == kinds
    layer = 2 - held
    assert all(f"2 of the 4 parameters ({layer}.weight, {layer}.bias)" in finding.text for finding in audit.findings)


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
    assert {finding.kind for finding in audit.findings} == {"wasted"}


def test_one_loss_for_two_players_is_a_question_and_the_cure_says_when_it_is_right():
    encoder, decoder, optimizer_e, optimizer_d = make_all()
    with GradientAudit(encoder=encoder, decoder=decoder) as audit:
        decoder(encoder(batch()[1])).sum().backward()
        optimizer_e.step()
        optimizer_d.step()
    (finding,) = audit.findings
    assert (finding.kind, finding.severity) == ("meant?", "question")
    assert "autoencoder" in finding.cure
    audit.check()
    with pytest.raises(GradientFlowError, match="meant"):
        audit.check(questions=True)


def test_without_any_optimizer_all_is_wasted_and_nothing_else():
    generator, discriminator = make_networks()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        discriminator(generator(batch()[1])).sum().backward()
    assert cells(audit) == [("wasted", "wasted")]
    assert {finding.kind for finding in audit.findings} == {"wasted"}
    assert all("No optimizer stepped" in finding.cure for finding in audit.findings)
    audit.check()
