"""What TensorBoard shows: curves that are means since their last point, pictures, and where a run comes from."""

import numpy as np
import torch
from helpers import ROOT, load, logged, points_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from scripts import gan_detach

SMALL = "--model mlp --image-size 8 --batch-size 4 --steps 2 --log-every 1 --device cpu"
NUMBERS = {
    "a float": (0.25, 0.25),
    "an int": (3, 3),
    "a bool": (True, 1),
    "numpy's": (np.float32(0.5), 0.5),
    "penalty": (torch.tensor(0.125), 0.125),
    "bfloat16": (torch.tensor(2.0, dtype=torch.bfloat16), 2),
    "count": (torch.tensor(7), 7),
    "one element": (torch.tensor([[0.75]]), 0.75),
    "with a graph": (torch.tensor(1.5, requires_grad=True) * 2, 3),
    "loss/r1": (torch.tensor(4.5), 4.5),
    "a group/of its own": (0.5, 0.5),
}


def test_every_number_is_a_curve_and_every_loss_stands_beside_the_bar(tmp_path, monkeypatch, outcome):
    values, train_step = {name: value for name, (value, _) in NUMBERS.items()}, gan_detach.train_step
    monkeypatch.setattr(gan_detach, "train_step", lambda *given: train_step(*given) | values)
    status, _, printed = outcome("gan_detach", *SMALL.split(), "--runs-dir", tmp_path)
    assert status == 0
    points = points_of(next(tmp_path.glob("gan_detach/*")))
    for name, (_, expected) in NUMBERS.items():
        assert points[name] == [(1, expected), (2, expected)]
    assert "loss/r1 4.500" in printed
    assert "penalty" not in printed


def numbers(step):
    """A number of every step, and one of every third; both exact in float32."""
    return {"a": torch.tensor(float(step))} | ({"b": torch.tensor(10.0 * step)} if step % 3 == 0 else {})


def test_a_point_is_the_mean_of_the_steps_since_the_last_one_that_had_the_number(tmp_path):
    run = logged(tmp_path, numbers, steps=9, log_every=4)
    points, checkpoint = points_of(run), load(run)
    assert points["a"] == [(1, 1), (4, 3), (8, 6.5), (9, 9)]  # 2 to 4, 5 to 8, and what there is at the end
    assert points["b"] == [(4, 30), (8, 60), (9, 90)]
    assert checkpoint["sums"] == {"a": (9.0, 1), "b": (90.0, 1)}  # not reset by the last step: more may follow


def test_options_and_where_a_run_comes_from_are_in_the_tab_hparams_without_a_path_of_this_machine(finished):
    (content,) = EventAccumulator(str(finished)).Reload().PluginTagToContent("hparams").values()
    facts = HParamsPluginData.FromString(content).session_start_info.hparams
    assert facts["batch_size"].number_value == 4
    assert (facts["model"].string_value, facts["device"].string_value) == ("mlp", "cpu")
    assert facts["versions"].string_value.startswith("torch ")
    assert {"command", "commit", "init_from"} < facts.keys()
    assert str(ROOT / "scripts") not in str(facts)


def test_the_tab_hparams_has_the_steps_that_a_resumed_run_was_given_and_each_curve_stays(tmp_path):
    run = logged(tmp_path, numbers, steps=2, log_every=1)
    logged(tmp_path, numbers, steps=3, log_every=1, resume=run)
    events = EventAccumulator(str(run)).Reload()
    (content,) = events.PluginTagToContent("hparams").values()
    facts = HParamsPluginData.FromString(content).session_start_info.hparams
    assert facts["steps"].number_value == 3
    assert points_of(run)["a"] == [(1, 1), (2, 2), (3, 3)]
