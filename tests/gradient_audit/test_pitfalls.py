"""Every entry does what it says."""

import math
import re
from functools import cache

import pytest
import torch
from torch import nn

from common.pitfalls import PITFALLS, Outcome, match_error, one_weight_gan
from common.pitfalls import observe as observe_again

ENTRIES = {pitfall.name: pitfall for pitfall in PITFALLS}
each_entry = pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda pitfall: pitfall.name)
each_live_entry = pytest.mark.parametrize(
    "pitfall", [pitfall for pitfall in PITFALLS if not pitfall.not_run], ids=lambda pitfall: pitfall.name
)
observe = cache(observe_again)  # some forms compile, or start a process group


@each_live_entry
def test_the_wrong_form_fails_as_the_entry_says(pitfall):
    outcome = observe(pitfall.wrong)
    assert outcome.is_as(pitfall.wrong_gives), outcome
    assert pitfall.silent == (outcome.exception is None)


@each_live_entry
def test_the_right_form_gives_what_the_entry_says_and_no_message(pitfall):
    outcome = observe(pitfall.right)
    assert outcome.is_as(pitfall.right_gives), outcome
    assert outcome.message is None


@each_live_entry
def test_wrong_and_right_differ(pitfall):
    assert not observe(pitfall.wrong).is_as(pitfall.right_gives)


@each_live_entry
def test_the_message_of_the_wrong_form_finds_the_entry_among_those_that_share_it(pitfall):
    message = observe(pitfall.wrong).message
    if message is None:
        assert not pitfall.errors  # nothing to look up
        return
    matches = match_error(message)
    assert pitfall in matches
    assert set(matches[0].errors) & set(pitfall.errors)


def test_names_can_be_typed_and_told_apart():
    assert len(ENTRIES) == len(PITFALLS)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) for name in ENTRIES)


@each_entry
def test_texts_are_sentences_and_the_entries_they_name_exist(pitfall):
    for text in (pitfall.why, pitfall.cure):
        assert text.endswith(".")
        assert "  " not in text
        assert set(re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)", text)) <= set(ENTRIES)


@each_entry
def test_an_entry_that_is_not_run_says_why_and_which_error_it_explains(pitfall):
    assert bool(pitfall.not_run) == (pitfall.wrong is None) == (pitfall.right is None)
    if pitfall.not_run:
        assert pitfall.not_run.endswith(".")
        assert pitfall.errors


@pytest.mark.parametrize(
    ("outcome", "expected", "same"),
    [
        (Outcome((None, [[0.35]])), (None, [[0.35000001]]), True),
        (Outcome([0.0, 0.0]), [0.0, 1e-6], False),
        (Outcome(None), 0.0, False),
        (Outcome([1.0]), [1.0, 1.0], False),
        (Outcome(exception=RuntimeError), RuntimeError, True),
        (Outcome(exception=RuntimeError), ValueError, False),
        (Outcome(exception=RuntimeError), None, False),
        (Outcome(0.0), RuntimeError, False),
    ],
)
def test_an_outcome_is_as_expected_only_if_it_is(outcome, expected, same):
    assert outcome.is_as(expected) is same


# The claims of the texts that no entry runs.


def test_a_sigmoid_before_bce_with_logits_gives_the_gradients_of_the_formulas():
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    logits = (-10.0, 0.0, 10.0)
    twice = [(sigmoid(sigmoid(x)) - 1) * sigmoid(x) * (1 - sigmoid(x)) / 3 for x in logits]
    once = [(sigmoid(x) - 1) / 3 for x in logits]
    assert observe(ENTRIES["sigmoid-then-logits"].wrong).value == pytest.approx(twice, rel=2e-3)
    assert observe(ENTRIES["sigmoid-then-logits"].right).value == pytest.approx(once, rel=2e-3)
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
    assert {pitfall.name for pitfall in match_error(message)} == {"leaf-in-place", "leaf-assignment"}


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
