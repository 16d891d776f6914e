"""The one-weight GAN: what autograd computes is what the formulas say."""

import re

import pytest

from gradient_audit import mistakes
from scripts.tools import gradient_walkthrough as walkthrough

pytestmark = pytest.mark.numerics
START = ("start", None, None, 0.5, 0.7)
D_BACKWARD = ("d_loss.backward()", None, 0.35, 0.5, 0.7)
EXPECTED = {  # after, grad_g, grad_d, weight_g, weight_d
    walkthrough.update_both: [
        START,
        D_BACKWARD,
        ("g_loss.backward()", 0.49, 0.35, 0.5, 0.7),
        ("optimizer_g.step()", 0.49, 0.35, 0.01, 0.7),
        ("optimizer_d.step()", 0.49, 0.35, 0.01, 0.35),
    ],
    walkthrough.update_d_first: [
        START,
        D_BACKWARD,
        ("optimizer_d.step()", None, 0.35, 0.5, 0.35),
        ("g_loss.backward()", 0.1225, 0.525, 0.5, 0.35),
        ("optimizer_g.step()", 0.1225, 0.525, 0.3775, 0.35),
        ("optimizer_d.zero_grad()", 0.1225, None, 0.3775, 0.35),
    ],
}


def walked(update):
    gan = walkthrough.OneWeightGAN()
    update(gan)
    return gan


@pytest.mark.parametrize("update", walkthrough.UPDATES.values())
def test_gradients_and_weights_after_every_call_are_the_known_ones(update):
    expected = {call: dict(zip(walkthrough.COLUMNS, values, strict=True)) for call, *values in EXPECTED[update]}
    rows = walked(update).rows
    assert list(rows) == list(expected)
    for call, row in rows.items():
        assert row == {name: value and pytest.approx(value, abs=1e-15) for name, value in expected[call].items()}


@pytest.mark.parametrize("update", walkthrough.UPDATES.values())
def test_every_printed_equation_holds(update):
    equations = [line.split(" = ") for line in walked(update).lines if line.startswith("    ") and line.count("=") > 1]
    assert equations
    for *_, numbers, value in equations:
        assert eval(numbers.replace("^", "**")) == pytest.approx(float(value), abs=1e-4)


def test_a_number_by_hand_that_is_not_autograd_s_ends_the_script():
    gan = walkthrough.OneWeightGAN()
    gan.discriminator(gan.noise).backward()
    with pytest.raises(ArithmeticError, match="grad_d"):
        gan.note("backward()", grad_d="3 * fake**2 * weight_d")


def test_the_printout_fits_a_terminal_of_80_columns_and_is_plain_ascii(capsys):
    walkthrough.main(walkthrough.Options())
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 80
    for update in walkthrough.UPDATES.values():
        assert "\n".join(walked(update).lines) in printed


def test_the_mistakes_that_the_text_names_are_in_the_catalogue():
    lessons = " ".join(update(walkthrough.OneWeightGAN()) for update in walkthrough.UPDATES.values())
    named = set(re.findall(r"`([a-z-]+)`", lessons))
    assert {"d-steps-on-g-loss", "fused-step"} <= named <= set(mistakes.names())
