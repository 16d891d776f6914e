"""Modes of stacked digits: counted as they are, and evaluated in a finished run."""

import json
import math

import pytest
import torch
from helpers import change

from common.data import load_stacked_digits
from common.models import mlp
from scripts.tools import evaluate
from scripts.tools.modes import coverage, modes_of


def test_modes_and_their_divergence_by_hand():
    assert modes_of(torch.tensor([[0, 0, 0], [1, 2, 3], [9, 9, 9]])).tolist() == [0, 123, 999]
    data = modes_of(load_stacked_digits()[1])
    assert coverage(data) == {"modes": 1000, "reverse_kl": pytest.approx(0, abs=1e-12)}
    one, two = (data == 5).sum().item() / 60_000, (data == 7).sum().item() / 60_000
    divergence = 0.25 * math.log(0.25 / one) + 0.75 * math.log(0.75 / two)
    found = coverage(torch.tensor([5, 7, 7, 7]))
    assert found == {"modes": 2, "reverse_kl": pytest.approx(divergence, rel=1e-12)}


@pytest.mark.tools
@pytest.mark.numerics
def test_evaluate_counts_the_modes_of_a_run_beside_those_of_real_images(run):
    generator = mlp((3, 28, 28), 8)[0]
    with torch.no_grad():  # the same image from any noise
        generator[-3].weight.zero_()
        generator[-3].bias.copy_((load_stacked_digits(1)[0][0].flatten() / 127.5 - 1).clamp(-0.99, 0.99).atanh())
    entries = {"data_shapes": [(60_000, 3, 28, 28)], "generator": generator.state_dict()}
    change(run, lambda checkpoint: checkpoint.update(entries))
    evaluate.main(evaluate.Options(run, count=3000, weights="last", dataset="stacked-digits", device="cpu"))
    (entry,) = json.loads((run / "evaluation.json").read_text())
    found, floor = entry["samples"], entry["floor"]
    assert entry["classifier_accuracy"] >= 0.97  # 97.8% to 98.2%, by the processor and the seed
    assert set(found) == set(floor) == {"modes", "reverse_kl", "confident", "lattice"}
    assert (found["modes"], found["confident"]) == (1, 1)
    assert found["reverse_kl"] == pytest.approx(math.log(1000), abs=0.7)  # a mode has 36 to 88 of the 60,000 images
    assert 920 <= floor["modes"] <= 980  # of 1,000 (1 - exp(-3)) = 950, with a deviation of 6
    assert 0.1 <= floor["reverse_kl"] <= 0.25  # 999 / 6,000 = 0.17, if no digit is misjudged
    assert floor["confident"] >= 0.8
