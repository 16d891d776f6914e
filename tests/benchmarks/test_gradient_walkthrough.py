"""The one-weight GAN: what autograd computes is what the formulas say."""

import re

import pytest

from gradient_audit import mistakes
from scripts.benchmarks import gradient_walkthrough as walkthrough

pytestmark = pytest.mark.numerics
EXPECTED = {  # grad_g, grad_d, weight_g, weight_d at the end; after each call, the script compares them itself
    walkthrough.update_both: (0.49, 0.35, 0.01, 0.35),
    walkthrough.update_d_first: (0.1225, None, 0.3775, 0.35),
}


@pytest.mark.parametrize("update", EXPECTED)
def test_every_gradient_and_weight_is_the_known_one_and_every_printed_equation_holds(update):
    gan = walkthrough.OneWeightGAN()
    update(gan)
    *_, last = gan.rows.values()
    assert [*last.values()] == [value and pytest.approx(value, abs=1e-15) for value in EXPECTED[update]]
    equations = [line.split(" = ") for line in gan.lines if line.startswith("    ") and line.count("=") > 1]
    assert len(equations) >= 4
    for *_, numbers, value in equations:
        assert eval(numbers.replace("^", "**")) == pytest.approx(float(value), abs=1e-4)


def test_both_ways_are_printed_and_the_mistakes_named_are_in_the_catalogue(capsys):
    walkthrough.main(walkthrough.Options())
    printed = capsys.readouterr().out
    for update in walkthrough.UPDATES.values():
        gan = walkthrough.OneWeightGAN()
        named = set(re.findall(r"`([a-z-]+)`", update(gan)))
        assert "\n".join(gan.lines) in printed
        assert named
        assert named <= set(mistakes.names())
