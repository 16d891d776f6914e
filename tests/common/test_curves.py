"""Whatever numbers a step returns are curves, under their own names; a batch of them is refused in one line."""

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from scripts import gan_detach

ARGUMENTS = "--model mlp --image-size 8 --batch-size 4 --steps 2 --log-every 1 --device cpu"


def train(values, runs, monkeypatch, outcome):
    """Train with a step that returns `values`, too; return the exit status, the run's curves and stderr."""
    train_step = gan_detach.train_step

    def step(*arguments):
        return train_step(*arguments) | values

    monkeypatch.setattr(gan_detach, "train_step", step)
    status, _, printed = outcome("gan_detach", *ARGUMENTS.split(), "--runs-dir", runs)
    (run,) = (runs / "gan_detach").iterdir()
    events = EventAccumulator(str(run)).Reload()
    curves = {tag: [point.value for point in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    return status, curves, printed


NUMBERS = {
    "a float": (0.25, 0.25),
    "an int": (3, 3),
    "a bool": (True, 1),
    "numpy's": (np.float32(0.5), 0.5),
    "penalty": (torch.tensor(0.125), 0.125),
    "float64": (torch.tensor(0.5, dtype=torch.float64), 0.5),
    "bfloat16": (torch.tensor(2.0, dtype=torch.bfloat16), 2),
    "count": (torch.tensor(7), 7),
    "skipped": (torch.tensor(True), 1),
    "one element": (torch.tensor([[0.75]]), 0.75),
    "with a graph": (torch.tensor(1.5, requires_grad=True) * 2, 3),
    "r1_loss": (torch.tensor(4.5), 4.5),
    "a group/of its own": (0.5, 0.5),
}


def test_every_number_is_a_curve_and_every_loss_stands_beside_the_bar(tmp_path, monkeypatch, outcome):
    values = {name: value for name, (value, _) in NUMBERS.items()}
    status, curves, printed = train(values, tmp_path, monkeypatch, outcome)
    assert status == 0
    for name, (_, expected) in NUMBERS.items():
        assert curves["loss/r1" if name == "r1_loss" else name] == [expected, expected]
    assert {"loss/discriminator", "loss/generator", "probability/real", "probability/fake"} < curves.keys()
    assert "r1_loss 4.500" in printed
    assert "penalty" not in printed


@pytest.mark.parametrize("shape", [(4, 1, 8, 8), (0,)])
def test_a_tensor_of_several_numbers_is_refused_in_one_line(shape, tmp_path, monkeypatch, outcome):
    status, _, printed = train({"images": torch.zeros(shape)}, tmp_path, monkeypatch, outcome)
    assert status == 1
    told = f"error: step 1: the step returned a tensor of shape {shape} as 'images'; a curve takes one number"
    assert printed.splitlines()[-1] == told


def test_a_number_of_the_users_own_that_is_not_finite_stops_the_run_by_its_name(tmp_path, monkeypatch, outcome):
    status, _, printed = train({"penalty": float("nan")}, tmp_path, monkeypatch, outcome)
    assert status == 1
    assert "error: step 1: penalty is nan; " in printed
