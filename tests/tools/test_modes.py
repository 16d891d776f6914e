"""Modes of stacked digits: counted as they are, and evaluated in a finished run."""

import json
import math

import pytest
import torch
from torch.optim.swa_utils import AveragedModel

from common.data import load_stacked_digits
from common.models import mlp
from scripts.tools import evaluate
from scripts.tools.modes import coverage, modes_of


def test_a_mode_is_three_digits():
    assert modes_of(torch.tensor([[0, 0, 0], [1, 2, 3], [9, 9, 9]])).tolist() == [0, 123, 999]


def test_coverage_of_the_data_is_whole_and_its_divergence_zero():
    found = coverage(modes_of(load_stacked_digits()[1]))
    assert found["modes"] == 1000
    assert found["reverse_kl"] == pytest.approx(0, abs=1e-12)


def test_coverage_by_hand():
    counts = torch.bincount(modes_of(load_stacked_digits()[1]))
    one, two = counts[5].item() / 60_000, counts[7].item() / 60_000
    found = coverage(torch.tensor([5, 7, 7, 7]))
    assert found["modes"] == 2
    assert found["reverse_kl"] == pytest.approx(0.25 * math.log(0.25 / one) + 0.75 * math.log(0.75 / two), rel=1e-12)


@pytest.fixture
def stacked_run(tmp_path):
    """A run on stacked digits whose generator makes the same image from any noise."""
    torch.manual_seed(0)
    generator = mlp((3, 28, 28), 4)[0]
    with torch.no_grad():
        generator[-3].weight.zero_()
        generator[-3].bias.copy_((load_stacked_digits(1)[0][0].flatten() / 127.5 - 1).clamp(-0.99, 0.99).atanh())
    checkpoint = {
        "script": "gan_detach",
        "step": 3,
        "options": {"dataset": "stacked-digits", "image_size": None, "model": "mlp", "z_dim": 4},
        "data_shapes": [(60_000, 3, 28, 28)],
        "generator": generator.state_dict(),
        "average": AveragedModel(generator).state_dict(),
    }
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    return tmp_path


@pytest.mark.tools
@pytest.mark.numerics
def test_evaluate_counts_the_modes_of_a_run_beside_those_of_real_images(stacked_run, capsys):
    evaluate.main(evaluate.Options(stacked_run, count=3000, device="cpu"))
    (entry,) = json.loads((stacked_run / "evaluation.json").read_text())
    found, floor = entry["samples"], entry["floor"]
    assert set(found) == set(floor) == {"modes", "reverse_kl", "confident"}
    assert (found["modes"], found["confident"]) == (1, 1)
    assert found["reverse_kl"] == pytest.approx(math.log(1000), abs=0.7)  # a mode has 36 to 88 of the 60,000 images
    assert 920 <= floor["modes"] <= 980  # of 1,000 (1 - exp(-3)) = 950, with a deviation of 6
    assert 0.1 <= floor["reverse_kl"] <= 0.25  # 999 / 6,000 = 0.17, if no digit is misjudged
    assert floor["confident"] >= 0.8
    printed = capsys.readouterr().out
    assert "| modes      | 1       | 9" in printed
    assert "| reverse kl | 6." in printed


def test_the_count_is_26000_if_none_is_given(stacked_run, monkeypatch):
    seen = []
    monkeypatch.setattr(evaluate, "measure_modes", lambda images: seen.append(len(images)) or {"modes": 1})
    evaluate.main(evaluate.Options(stacked_run, device="cpu"))
    assert seen == [26_000, 26_000]
