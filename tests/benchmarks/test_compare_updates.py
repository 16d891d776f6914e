"""The comparison counts what a step costs, measures like with like, and reports it."""

import json

import pytest
import torch
from helpers import call
from PIL import Image

from common.models import MODELS
from scripts.benchmarks import compare_updates
from scripts.benchmarks.compare_updates import (
    COMPARISONS,
    ORDERS,
    count,
    gan_contender,
    repeat_step,
)
from scripts.benchmarks.step_cost import count_flops

CPU = torch.device("cpu")


def networks_and_batch(model="mlp", size=28, batch_size=3):
    torch.manual_seed(0)
    batch = torch.rand(batch_size, 1, size, size) * 2 - 1, torch.randn(batch_size, 8)
    return MODELS[model]((1, size, size), 8), batch


def test_an_order_repeats_its_cost_after_a_period():
    networks, batch = networks_and_batch()
    for order in ORDERS.values():
        made = gan_contender(order.train_step, networks)
        repeat_step(made, batch, 16)  # some orders check D at steps 1, 2, 4, 8 and 16
        first, second = (sum(count_flops(lambda: repeat_step(made, batch, order.period))) for _ in range(2))  # noqa: B023
        assert first == second > 0


def test_a_step_of_fully_connected_networks_costs_what_one_counts_by_hand():
    """Two FLOPs a multiplication; G takes 8 numbers to 784 by way of 256 twice, and D 784 to 1."""
    (generator, discriminator), batch = networks_and_batch()
    g_first, g_rest, d_first, d_rest = 8 * 256, 256 * 256 + 256 * 784, 784 * 256, 256 * 256 + 256
    forward_g, forward_d = g_first + g_rest, d_first + d_rest
    # Of a layer, the gradient of its weights costs its forward pass, and that of its input, which the first one of a
    # network has no use for, once more.
    d_loss = 2 * forward_d + 2 * (2 * forward_d - d_first)  # real and fake
    g_loss = forward_d + forward_d + 2 * forward_g - g_first  # back through D to the fakes, then through G
    made = gan_contender(ORDERS["detach"].train_step, [generator, discriminator])
    assert sum(count_flops(lambda: made.step(*batch))) == 2 * 3 * (forward_g + d_loss + g_loss)


def test_only_retain_graph_and_the_textbook_compute_gradients_that_no_optimizer_uses():
    counts = {name: count(order, *networks_and_batch()) for name, order in ORDERS.items()}
    wasted = {name: figures["wasted"] for name, figures in counts.items() if figures["wasted"]}
    assert wasted == {
        "retain_graph": "G by `d_loss.backward(retain_graph=True)`, D by `g_loss.backward()`",
        "detach, textbook": "D by `g_loss.backward()`",
    }


@pytest.mark.parametrize("what", COMPARISONS)
def test_every_comparison_prints_its_rows_and_writes_them(what, tmp_path, capsys):
    output = tmp_path / "figures.json"
    options = f"--what {what} --model mlp --batch-size 2 --repeats 1 --device cpu --output {output}"
    call("compare_updates", *options.split())
    printed, result = capsys.readouterr().out, json.loads(output.read_text())
    assert printed.strip().endswith(compare_updates.report(result))
    assert "output" not in result["options"]  # a path of this machine
    assert result["rows"][COMPARISONS[what][2]]["speed"] == [1]
    for name, row in result["rows"].items():
        assert f"| {name} " in printed
        assert row["ms"][0] > 0
        if what == "orders" and ORDERS[name].is_exact:
            assert row["needed"] is None
            assert f"| {row['flops'] / 1e9:.3f}  | -  " in printed
        else:
            assert row.get("flops", 1) >= row.get("needed", 1) > 0


OWN = """
from torch import nn

def make_networks(shape, z_dim):
    generator = nn.Sequential(nn.Linear(z_dim, 48), nn.BatchNorm1d(48), nn.Unflatten(1, (3, 4, 4)))
    return generator, nn.Sequential(nn.Flatten(), nn.Linear(48, 5), nn.BatchNorm1d(5), nn.Linear(5, 1))

def attentive(shape, z_dim):
    class Attention(nn.Module):
        def forward(self, x):
            return (x @ x.mT @ x).flatten(1)

    return make_networks(shape, z_dim)[0], nn.Sequential(nn.Flatten(2), Attention(), nn.Linear(48, 1))

def wrong(shape, z_dim):
    return make_networks(shape, z_dim)[0], nn.Linear(7, 1)
"""


@pytest.fixture
def own(tmp_path):
    """What compares one's own networks on one's own images."""
    (tmp_path / "own.py").write_text(OWN)
    for number in range(4):
        Image.new("RGB", (5, 5), (60 * number, 0, 0)).save(tmp_path / f"{number}.png")
    sizes = f"--dataset {tmp_path} --image-size 4 --batch-size 3 --repeats 1 --device cpu"
    return [*sizes.split(), "--output", tmp_path / "figures.json", "--networks", f"{tmp_path / 'own.py'}"]


def test_own_networks_are_compared_and_an_order_that_cannot_train_them_says_why(own, tmp_path, capsys, refusal):
    *options, file = own
    call("compare_updates", *options, f"{file}:make_networks")
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    refused = {"one_stage", *(name for name in ORDERS if name.startswith(("wgan_gp", "r3")))}
    assert {name for name, row in rows.items() if "why" in row} == refused
    assert "depends on the other samples of the batch" in rows["one_stage"]["why"]
    assert rows["detach"]["flops"] == rows["detach"]["needed"] == rows["retain_graph"]["needed"] > 0
    assert rows["generator_first"]["needed"] == rows["simultaneous"]["needed"]
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| one_stage"))
    assert rows["one_stage"]["why"] in line
    (tmp_path / "figures.json").unlink()

    call("compare_updates", *options, f"{file}:attentive")
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert rows["retain_graph"]["flops"] > rows["retain_graph"]["needed"] == rows["detach"]["flops"]
    (tmp_path / "figures.json").unlink()
    line = refusal("compare_updates", *options, f"{file}:wrong")
    assert "own.py:wrong: " in line
    assert "mat1 and mat2 shapes" in line


def test_bad_options_are_refused_before_anything_is_measured(monkeypatch, tmp_path, refusal):
    monkeypatch.setattr(compare_updates, "images_and_networks", None)
    (tmp_path / "mine.json").touch()
    for option in (f"--output {tmp_path / 'mine.json'}", "--output table.md", "--repeats=0"):
        assert option in refusal("compare_updates", *option.split())
