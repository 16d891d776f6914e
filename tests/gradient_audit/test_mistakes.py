"""Every mistake of the catalogue does here what its file says."""

import math
import re
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from gradient_audit.findings import KINDS
from gradient_audit.mistakes import Outcome, describe, does_as_described, load, match, names
from gradient_audit.mistakes import observe as observe_again
from gradient_audit.mistakes.one_weight import one_weight_gan

LIVE = [name for name in names() if not load(name).not_run]
observe = cache(observe_again)  # some forms compile, or start a process group
each = pytest.mark.parametrize("mistake", [load(name) for name in names()], ids=names())
each_live = pytest.mark.parametrize("mistake", [load(name) for name in LIVE], ids=LIVE)


@each_live
def test_both_forms_do_what_the_file_says_and_the_right_one_without_a_warning(mistake):
    wrong, right = observe(mistake.wrong), observe(mistake.right)
    assert does_as_described(mistake, wrong, right), (wrong, right)
    assert not right.message


@each_live
def test_a_right_form_in_place_of_the_wrong_one_is_noticed(mistake):
    wrong, right = observe(mistake.wrong), observe(mistake.right)
    assert not does_as_described(mistake, right, right)
    assert not does_as_described(mistake, wrong, wrong)


@each_live
def test_the_message_of_the_wrong_form_finds_the_mistake_among_those_that_share_it(mistake):
    message = observe(mistake.wrong).message
    if message:
        matches = match(message)
        assert mistake in matches
        assert set(matches[0].messages) & set(mistake.messages)
    else:
        assert mistake.silent


@each
def test_texts_are_sentences_and_the_mistakes_they_name_exist(mistake):
    for text in (mistake.why, mistake.cure):
        assert text.endswith(".")
        assert set(re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)", text)) <= set(names())
    assert bool(mistake.not_run) == (mistake.wrong is None) == (mistake.right is None)
    assert mistake.messages or not mistake.not_run


def test_the_mistakes_that_findings_name_exist():
    assert {name for kind in KINDS.values() for name in kind.mistakes} <= set(names())


def test_a_form_that_behaves_otherwise_is_noticed_and_the_printout_says_so():
    mistake = load("data-edit")
    for changed in (replace(mistake, wrong=mistake.right), replace(mistake, right=mistake.wrong)):
        assert "does something else here" in describe(changed)
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


def test_a_sigmoid_before_bce_with_logits_gives_the_gradients_of_the_formulas():
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    logits = (-10.0, 0.0)
    twice = [(sigmoid(sigmoid(x)) - 1) * sigmoid(x) * (1 - sigmoid(x)) / 2 for x in logits]
    once = [(sigmoid(x) - 1) / 2 for x in logits]
    assert observe(load("sigmoid-twice").wrong).value == pytest.approx(twice, rel=2e-3)
    assert observe(load("sigmoid-twice").right).value == pytest.approx(once, rel=2e-3)
    assert twice[0] / once[0] < 1e-4  # the losing G


def test_retain_graph_silences_the_second_backward_and_leaves_the_gradient_of_both_losses_in_g():
    def retained():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        (discriminator(fake) ** 2).backward(retain_graph=True)
        ((discriminator(fake) - 1) ** 2).backward()
        return generator.weight.grad

    def added():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        (discriminator(fake) ** 2 + (discriminator(fake) - 1) ** 2).backward()
        return generator.weight.grad

    assert observe(retained).value == [[pytest.approx(0.49 - 0.91)]] == observe(added).value


def test_both_losses_backward_before_either_step_is_a_cure_of_step_between_backwards():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    score = discriminator(generator(torch.ones(1, 1)))
    (score**2).backward(retain_graph=True, inputs=list(discriminator.parameters()))
    ((score - 1) ** 2).backward(inputs=list(generator.parameters()))
    optimizer_d.step()
    optimizer_g.step()
    assert discriminator.weight.grad.item() == pytest.approx(0.35)
    assert generator.weight.grad.item() == pytest.approx(-0.91)


@pytest.mark.parametrize("layer", [nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Linear(3, 3)], ids=repr)
def test_an_in_place_activation_is_safe_after_a_layer_that_does_not_need_its_output(layer):
    x = torch.arange(18.0).reshape(1, 2, 3, 3).sin()
    weights = list(layer.parameters())
    in_place = torch.autograd.grad(nn.LeakyReLU(0.2, inplace=True)(layer(x)).square().sum(), weights)
    plain = torch.autograd.grad(nn.LeakyReLU(0.2)(layer(x)).square().sum(), weights)
    assert all(map(torch.equal, in_place, plain))


@pytest.mark.parametrize("edit", [lambda a: a.add_(10), lambda a: a.__iadd__(10), lambda a: a[0].fill_(1)])
def test_no_recorded_in_place_edit_of_a_leaf_passes(edit):
    message = observe(lambda: edit(torch.ones(2, requires_grad=True))).message
    assert [mistake.name for mistake in match(message)] == ["leaf-in-place"]


def test_data_hides_an_edit_from_the_version_counter_and_detach_does_not():
    b = torch.ones(2)
    b.data.zero_()
    assert b._version == 0
    b.detach().zero_()
    assert b._version == 1


@pytest.mark.parametrize("cure", ["freeze", "zero", "detach"])
def test_other_cures_of_both_backward(cure):
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss, g_loss = discriminator(fake.detach()) ** 2, discriminator(fake) ** 2
    if cure == "freeze":
        d_loss.backward()
        discriminator.requires_grad_(False)
        g_loss.backward()
    elif cure == "zero":
        g_loss.backward()
        optimizer_d.zero_grad()
        d_loss.backward()
    else:
        d_loss.backward()
        torch.autograd.grad(g_loss, list(generator.parameters()))
    assert discriminator.weight.grad.item() == pytest.approx(0.35)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_a_fused_step_raises_no_version_and_the_default_one_does(kind):
    def versions(**options):
        weight = torch.ones(2, requires_grad=True)
        optimizer = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        weight.sum().backward()
        before = weight._version
        optimizer.step()
        return weight._version - before

    assert versions(fused=True) == 0
    assert versions() > 0
    assert versions(foreach=True) > 0


def stale(wrap=lambda discriminator: discriminator, fused_and_checked=False):
    """Return G's gradient where D steps between two backward passes of one graph."""
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    if fused_and_checked:
        weights = list(discriminator.parameters())
        optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)
        optimizer_d.register_step_post_hook(lambda *_: torch.autograd.graph.increment_version(weights))
    score = wrap(discriminator)(generator(torch.ones(1, 1)))
    (score**2).backward(retain_graph=True)
    optimizer_d.step()
    optimizer_g.zero_grad()
    (score**2).backward()
    return generator.weight.grad.item()


def test_the_cure_of_fused_step_makes_the_mistake_an_error_again():
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stale(fused_and_checked=True)


def test_a_compiled_network_keeps_the_check():
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stale(lambda discriminator: torch.compile(discriminator, backend="aot_eager"))


def test_hooks_on_saved_tensors_bypass_the_check():
    with torch.autograd.graph.save_on_cpu():
        assert stale() == pytest.approx(0.245)


@pytest.mark.parametrize(
    "empty",
    [
        lambda images: images.numpy().fill(0),
        lambda images: torch.from_dlpack(images).zero_(),
        lambda images: images.untyped_storage().fill_(0),
    ],
    ids=["numpy", "dlpack", "storage"],
)
def test_what_shares_the_memory_of_a_tensor_changes_it_without_its_version(empty):
    images = torch.ones(2)
    empty(images)
    assert (images.tolist(), images._version) == ([0.0, 0.0], 0)
