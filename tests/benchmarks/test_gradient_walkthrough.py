"""The one-weight GAN: what autograd computes is what the formulas say."""

import re

import pytest

from gradient_audit import mistakes
from scripts.benchmarks import gradient_walkthrough as walkthrough

pytestmark = pytest.mark.numerics
# grad_g, grad_d, weight_g, weight_d at the end; after each call, the script compares them itself.
EXPECTED = dict(zip(walkthrough.WAYS, [(0.49, 0.35, 0.01, 0.35), (0.1225, None, 0.3775, 0.35)], strict=True))


@pytest.mark.parametrize("way", EXPECTED)
def test_every_gradient_and_weight_is_the_known_one_and_every_printed_equation_holds(way):
    lines, last = walkthrough.run_way(walkthrough.WAYS[way].partition("\n\n")[0])
    assert [*last.values()] == [value and pytest.approx(value, abs=1e-15) for value in EXPECTED[way]]
    equations = [line.split(" = ") for line in lines if line.startswith("    ") and line.count("=") > 1]
    assert len(equations) >= 4
    for *_, numbers, value in equations:
        assert eval(numbers.replace("^", "**")) == pytest.approx(float(value), abs=1e-4)


def test_a_formula_that_is_not_what_autograd_computes_is_an_error():
    with pytest.raises(ArithmeticError, match=r"^after optimizer_g.step\(\): weight_g is 0.5, and by hand 0.4$"):
        walkthrough.run_way("optimizer_g.step()  # weight_g = weight_g - 0.1")


def test_both_ways_are_printed_and_the_mistakes_named_are_in_the_catalogue(capsys):
    walkthrough.main(walkthrough.Options())
    printed = capsys.readouterr().out
    for way in walkthrough.WAYS.values():
        source, lesson = way.split("\n\n")
        named = set(re.findall(r"`([a-z-]+)`", lesson))
        assert "\n".join(walkthrough.run_way(source)[0]) in printed
        assert named
        assert named <= set(mistakes.names())
