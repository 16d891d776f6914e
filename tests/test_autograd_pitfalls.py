"""Every entry does what it says, and the text of an error finds it."""

import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from common.command_line import launch
from common.pitfalls import PITFALLS, Outcome, match_error, observe, one_weight_gan
from scripts import autograd_pitfalls as script

ENTRIES = {pitfall.name: pitfall for pitfall in PITFALLS}
each_entry = pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda pitfall: pitfall.name)

IN_PLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
)
HINT = "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd."


def in_place(tensor, expected):
    return f"{IN_PLACE}: [{tensor}, is at version {expected + 1}; expected version {expected} instead. {HINT}"


@each_entry
def test_the_wrong_form_fails_as_the_entry_says(pitfall):
    outcome = observe(pitfall.wrong)
    assert outcome.is_as(pitfall.wrong_gives), outcome
    assert pitfall.silent == (outcome.exception is None)


@each_entry
def test_the_right_form_gives_what_the_entry_says_and_no_message(pitfall):
    outcome = observe(pitfall.right)
    assert outcome.is_as(pitfall.right_gives), outcome
    assert outcome.message is None


@each_entry
def test_wrong_and_right_differ(pitfall):
    assert not observe(pitfall.wrong).is_as(pitfall.right_gives)


@each_entry
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


def test_a_form_that_behaves_otherwise_is_noticed_and_the_printout_says_so():
    pitfall = ENTRIES["data-edit"]
    for changed in (
        replace(pitfall, wrong=pitfall.right),
        replace(pitfall, right=pitfall.wrong),
        replace(pitfall, wrong=ENTRIES["edit-through-detach"].wrong),
    ):
        assert "does something else here" in script.describe(changed)
    assert "does something else here" not in script.describe(pitfall)


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


# Texts as people paste them.


@pytest.mark.parametrize(
    ("text", "best"),
    [
        (IN_PLACE, "step-between-backwards"),
        (in_place("torch.FloatTensor [128, 1]], which is output 0 of TBackward", 1), "step-between-backwards"),
        (in_place("torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0", 1), "step-between-backwards"),
        (in_place("torch.cuda.FloatTensor [1, 1024, 1, 1]]", 1), "step-between-backwards"),
        (
            in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of SigmoidBackward0", 0),
            "inplace-activation",
        ),
        (in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of TanhBackward", 0), "inplace-activation"),
        (in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of ReluBackward0", 0), "edit-after-relu"),
        (in_place("torch.FloatTensor [2]], which is output 0 of CopySlices", 0), "edit-after-use"),
        (
            "Trying to backward through the graph a second time, but the buffers have already been freed. Specify "
            "retain_graph=True when calling backward the first time.",
            "second-backward",
        ),
        (
            "Trying to backward through the graph a second time, but the saved intermediate results have already been "
            "freed. Specify retain_graph=True when calling .backward() or autograd.grad() the first time.",
            "second-backward",
        ),
        ("a leaf Variable that requires grad has been used in an in-place operation.", "leaf-in-place"),
        ("a view of a leaf Variable that requires grad is being used in an in-place operation.", "leaf-assignment"),
        ("element 0 of variables does not require grad and does not have a grad_fn", "no-graph"),
        (
            "p.requires_grad = False\nelement 0 of tensors does not require grad and does not have a grad_fn",
            "all-frozen",
        ),
        ("Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.", "numpy-of-grad"),
        ("RuntimeError: Can\u2019t call numpy() on Tensor that requires grad.", "numpy-of-grad"),
        ("grad can be implicitly created only for scalar outputs", "non-scalar-loss"),
        ("One of the differentiated Tensors appears to not have been used in the graph.", "unused-in-graph"),
        (
            "ValueError: Target size (torch.Size([64])) must be the same as input size (torch.Size([64, 1]))",
            "label-shape-bce",
        ),
        (
            "ValueError: Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1]))"
            " is deprecated. Please ensure they have the same size.",
            "label-shape-bce",
        ),
        (
            "train.py:40: UserWarning: Using a target size (torch.Size([4])) that is different to the input size "
            "(torch.Size([4, 1])). This will likely lead to incorrect results due to broadcasting.",
            "label-shape-mse",
        ),
        (
            "UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
            "grad-of-non-leaf",
        ),
    ],
)
def test_messages_of_old_and_new_versions_find_their_entry(text, best):
    assert match_error(text)[0].name == best


TRACEBACK = f"""Traceback (most recent call last):
  File "train.py", line 65, in <module>
    g_loss.backward()
  File "/usr/lib/python3/site-packages/torch/_tensor.py", line 255, in backward
    torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)
{IN_PLACE}: [torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1
instead. {HINT}set_detect_anomaly(True).
"""


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, len(TRACEBACK)), max_size=12),
    st.sampled_from(["\n", "\r\n    ", " ", "\x1b[31m", "\x1b[1;91m", " \u2502\n\u2502 ", "\n> "]),
    st.sampled_from([str, str.upper]),
)
def test_wrapping_colours_frames_and_case_do_not_matter(places, noise, case):
    text = case(TRACEBACK)
    for place in sorted(places, reverse=True):
        text = text[:place] + noise + text[place:]
    assert match_error(text) == match_error(TRACEBACK) != []


def test_the_error_that_ended_the_program_beats_the_warnings_before_it():
    warning = observe(ENTRIES["label-shape-mse"].wrong).message
    names = [pitfall.name for pitfall in match_error(warning + "\n" + TRACEBACK)]
    assert names[0] == "step-between-backwards"
    assert "label-shape-mse" in names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x100 and 128x256)",
        "RuntimeError: Expected all tensors to be on the same device",
        "KeyError: 'grad'",
    ],
)
def test_other_errors_match_nothing(text):
    assert match_error(text) == []


# The script.


def run(capsys, *arguments):
    """Exit status and output of the script's own command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["autograd_pitfalls.py", *arguments])
        try:
            launch(script.main, script.Options)
            status = 0
        except SystemExit as leaving:
            status = leaving.code
    return status, *capsys.readouterr()


def test_a_name_shows_both_forms_what_they_did_why_and_the_cure(capsys):
    status, out, _ = run(capsys, "zero-grad-forgotten")
    assert status == 0
    for part in ("for _ in range(3):", "returns 6, -0.2", "returns 2, 0.4", "  why   backward() adds", "  cure  "):
        assert part in out
    assert run(capsys, "zero_grad_forgotten") == (0, out, "")  # underscores will do


def test_the_message_shown_is_the_one_raised_here(capsys):
    _, out, _ = run(capsys, "step-between-backwards")
    assert observe(ENTRIES["step-between-backwards"].wrong).message in " ".join(out.split())


def test_list_names_every_entry_on_a_line_of_80_columns(capsys):
    status, out, _ = run(capsys, "--list")
    assert status == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == sorted(
        ENTRIES, key=lambda name: ENTRIES[name].silent
    )
    assert max(map(len, lines)) <= 80


def test_without_arguments_every_entry_is_shown_and_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run(capsys)
    assert status == 0
    assert all(f"{name}\n{pitfall.title}\n" in out for name, pitfall in ENTRIES.items())
    assert "does something else here" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_an_error_lists_the_entries_that_fit_and_shows_the_best(capsys):
    status, out, _ = run(capsys, "--error", TRACEBACK)
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[1:7]] == [pitfall.name for pitfall in match_error(TRACEBACK)]
    assert "\nstep-between-backwards\n" in out


def test_it_is_admitted_when_no_entry_fits(capsys):
    status, out, _ = run(capsys, "--error", "CUDA out of memory")
    assert status == 1
    assert out.startswith("No entry")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["second-backwards"], ["NAME", "second-backward"]),
        (["qqq"], ["NAME", "--list"]),
        (["--error", " "], ["--error", "empty"]),
        (["--list", "--error", "x"], ["--list", "--error", "one of them"]),
    ],
)
def test_bad_input_gives_one_line_that_says_what_to_do_and_status_2(capsys, arguments, words):
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert all(word in err for word in words)


def test_a_traceback_is_read_from_standard_input_in_any_folder(tmp_path):
    command = [sys.executable, str(Path(script.__file__).resolve()), "--error", "-"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=TRACEBACK, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "step-between-backwards" in done.stdout
