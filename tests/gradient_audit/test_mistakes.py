"""Every mistake of the catalogue does here what its file says."""

import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from gradient_audit.findings import KINDS
from gradient_audit.mistakes import Outcome, describe, does_as_described, load, match, names, observe
from gradient_audit.mistakes.one_weight import one_weight_gan

ALL = [load(name) for name in names()]


@pytest.mark.parametrize("mistake", [m for m in ALL if not m.not_run], ids=lambda mistake: mistake.name)
def test_both_forms_do_what_the_file_says_and_the_message_finds_the_mistake_among_those_that_share_it(mistake):
    wrong, right = observe(mistake.wrong), observe(mistake.right)
    assert does_as_described(mistake, wrong, right), (wrong, right)
    assert not right.message
    assert not does_as_described(mistake, right, right)
    assert not does_as_described(mistake, wrong, wrong)
    assert wrong.message or mistake.silent
    if wrong.message:
        matches = match(wrong.message)
        assert mistake in matches
        assert set(matches[0].messages) & set(mistake.messages)


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_texts_are_sentences_and_the_mistakes_they_name_exist(mistake):
    for text in (mistake.why, mistake.cure):
        assert text.endswith(".")
        assert set(re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)", text)) <= set(names())
    assert bool(mistake.not_run) == (mistake.wrong is None) == (mistake.right is None)
    assert mistake.messages or not mistake.not_run


def test_the_mistakes_that_findings_name_exist():
    assert {name for kind in KINDS.values() for name in kind.mistakes} <= set(names())


def test_the_printout_says_so_where_a_form_does_something_else():
    mistake = load("data-edit")
    assert "does something else here" in describe(replace(mistake, wrong=mistake.right))
    assert "does something else here" not in describe(mistake)


@pytest.mark.parametrize(
    ("outcome", "expected", "same"),
    [
        (Outcome((None, [[0.35]])), (None, [[0.35000001]]), True),
        (Outcome([0.0, 0.0]), [0.0, 1e-6], False),
        (Outcome([1.0]), [1.0, 1.0], False),
        (Outcome(0.5, raised=True), 0.5, False),
    ],
)
def test_a_silent_mistake_is_as_described_only_if_its_numbers_are(outcome, expected, same):
    mistake = replace(load("data-edit"), wrong_returns=expected, right_returns=None)
    assert does_as_described(mistake, outcome, Outcome()) is same


# The claims of the texts that no entry runs.


@pytest.fixture
def gan():
    """G, D, an optimizer of each, and a fake with G's graph."""
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    return generator, discriminator, optimizer_g, optimizer_d, generator(torch.ones(1, 1))


def test_second_backward_retain_graph_leaves_the_gradient_of_both_losses_in_g(gan):
    generator, discriminator, _, _, fake = gan
    (discriminator(fake) ** 2).backward(retain_graph=True)
    ((discriminator(fake) - 1) ** 2).backward()
    assert generator.weight.grad.item() == pytest.approx(0.49 - 0.91)


def test_step_between_backwards_is_cured_by_both_backward_passes_before_either_step(gan):
    generator, discriminator, optimizer_g, optimizer_d, fake = gan
    score = discriminator(fake)
    (score**2).backward(retain_graph=True, inputs=list(discriminator.parameters()))
    ((score - 1) ** 2).backward(inputs=list(generator.parameters()))
    optimizer_d.step()
    optimizer_g.step()
    assert discriminator.weight.grad.item() == pytest.approx(0.35)
    assert generator.weight.grad.item() == pytest.approx(-0.91)


@pytest.mark.parametrize("layer", [nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Linear(3, 3)], ids=repr)
def test_inplace_activation_is_safe_after_a_layer_that_does_not_need_its_output(layer):
    x = torch.arange(18.0).reshape(1, 2, 3, 3).sin()
    weights = list(layer.parameters())
    in_place = torch.autograd.grad(nn.LeakyReLU(0.2, inplace=True)(layer(x)).square().sum(), weights)
    plain = torch.autograd.grad(nn.LeakyReLU(0.2)(layer(x)).square().sum(), weights)
    assert all(map(torch.equal, in_place, plain))


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_fused_step_raises_no_version(kind):
    weight = torch.ones(2, requires_grad=True)
    optimizer = getattr(torch.optim, kind)([weight], lr=0.1, fused=True)
    weight.sum().backward()
    before = weight._version
    optimizer.step()
    assert weight._version == before


def test_fused_step_is_an_error_again_where_a_hook_raises_the_version(gan):
    _, discriminator, _, _, fake = gan
    weights = list(discriminator.parameters())
    optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)
    optimizer_d.register_step_post_hook(lambda *_: torch.autograd.graph.increment_version(weights))
    score = discriminator(fake)
    (score**2).backward(retain_graph=True)
    optimizer_d.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (score**2).backward()
