"""The comparison counts what a step costs, measures like with like, and reports it."""

import json
import os
import re
import sys
from unittest import mock

import pytest
import torch
from helpers import call, make_images
from torchvision.ops import deform_conv2d

from common.errors import Stopped
from common.models import mlp
from scripts.benchmarks import compare_updates, harness
from scripts.benchmarks.compare_updates import count, gan_contender
from scripts.benchmarks.harness import ms_in_turns
from scripts.benchmarks.step_cost import StepCost
from scripts.benchmarks.update_orders import G_FIRST, ONE_PASS, ORDERS

pytestmark = pytest.mark.usefixtures("few_objects")


def networks_and_batch(size=28):
    torch.manual_seed(0)
    networks, batch = mlp((1, size, size), 8), (torch.rand(3, 1, size, size) * 2 - 1, torch.randn(3, 8))
    return [network.double() for network in networks], [part.double() for part in batch]


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """A function that makes a comparison with one short turn, and returns what it has written."""
    monkeypatch.setattr(compare_updates, "STEPS_PER_TURN", 1)
    monkeypatch.setattr(compare_updates, "WIDTHS", [(32, 16), (16, 48)])

    def compared(*options):
        output = tmp_path / "figures.json"
        call("compare_updates", "--batch-size", 3, "--repeats", 1, "--device", "cpu", "--output", output, *options)
        return json.loads(output.read_text())

    return compared


def test_figures_that_cannot_be_written_are_printed(compared, monkeypatch, capsys):
    monkeypatch.setattr(harness, "write_whole", mock.Mock(side_effect=Stopped("figures.json: cannot be written")))
    with pytest.raises(SystemExit, match="1"):
        compared("--what", "ratio")
    printed, errors = capsys.readouterr()
    assert "| one_stage " in printed
    assert errors.splitlines()[-1] == "error: figures.json: cannot be written"


def test_figures_are_written_where_the_reader_of_stdout_has_left(compared, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)  # as that of `| head`
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert compared("--what", "ratio")["rows"]


def test_products_with_vectors_are_counted_and_operations_without_a_formula_are_named(capsys):
    matrix, vector = torch.ones(3, 5), torch.ones(5)
    with StepCost() as cost:
        torch.mv(matrix, vector)
        torch.addmv(torch.ones(3), matrix, vector)
        torch.dot(vector, vector)
        torch.vdot(vector, vector)
    assert (cost.flops, cost.uncounted) == (2 * 15 + 2 * 15 + 2 * 5 + 2 * 5, set())
    with StepCost() as cost:
        torch.nn.functional.bilinear(matrix, matrix, torch.ones(2, 5, 5))
        torch.addbmm(torch.ones(3, 3), torch.ones(2, 3, 5), torch.ones(2, 5, 3))
        torch.conv_tbc(torch.ones(4, 1, 2), torch.ones(3, 2, 1), torch.ones(1))
        deform_conv2d(torch.ones(1, 1, 3, 3), torch.zeros(1, 2, 3, 3), torch.ones(1, 1, 1, 1))
        torch.linalg.inv_ex(torch.eye(3))
        torch.linalg.vector_norm(vector)
    assert cost.uncounted == {"_trilinear", "addbmm", "conv_tbc", "deform_conv2d", "linalg_inv_ex"}
    row = {"flops": 10, "needed": None, "memory": 1, "uncounted": ["_trilinear"]}
    shown = compare_updates.report({"rows": {G_FIRST: row, "detach, textbook": row}, "options": {"what": "orders"}})
    assert "GFLOPs are too few, as there is no formula for _trilinear." in shown
    cells = [compare_updates.cells_of("detach", row | {"flops": flops}, row)["GFLOPs"] for flops in (806e6, 702464)]
    assert cells == ["0.806", "0.000702"]


def test_contenders_take_turns_the_first_calls_are_not_timed_and_a_speed_is_that_of_the_same_turn(monkeypatch):
    calls, clock = [], iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    contenders = {name: lambda value, name=name: calls.append(name + value) for name in "abc"}
    ms = ms_in_turns(contenders, [["1", "2", "3"], ["4", "5", "6"]], torch.device("cpu"))
    assert "".join(calls) == "a1a2a3b1b2b3c1c2c3" + "b4b5b6c4c5c6a4a5a6"
    assert ms == {name: [500, 500] for name in "abc"}  # the clock ticks once for two timed calls
    row = {"ms": [1, 2], "flops": 1, "needed": None, "memory": 1}  # the machine is half as fast in the second turn
    assert compare_updates.cells_of("detach", row, {"ms": [2, 4]})["speed"] == "2.00 (2.00-2.00)"


def test_an_order_costs_what_is_counted_in_each_later_period_and_makes_the_update_that_it_names():
    networks, batch = networks_and_batch(4)
    after = {}
    for order in ORDERS.values():
        (step, trained), g_steps = gan_contender(order.train_step, networks), 0
        weights = [weight for network in trained.values() for weight in network.parameters()]
        for _ in range(15):
            before = weights[0].clone()
            step(*batch)
            g_steps += not before.equal(weights[0])
        assert g_steps == 15 / order.critic_steps
        values = torch.cat([weight.detach().flatten() for weight in weights])
        torch.testing.assert_close(values, after.setdefault(order.update, values), rtol=0, atol=1e-9)
        step(*batch)  # some orders check D at steps 1, 2, 4, 8 and 16
        with StepCost(weight.grad for weight in weights if weight.grad is not None) as cost:
            for _ in range(order.period):
                step(*batch)
        flops = round(cost.flops / order.period)
        assert count(order, networks, batch) == {"flops": flops, "memory": cost.peak, "uncounted": []}


def test_a_step_of_fully_connected_networks_costs_what_one_counts_by_hand():
    """Two FLOPs a multiplication; G takes 8 numbers to 784 by way of 256 twice, and D 784 to 1."""
    (generator, discriminator), batch = networks_and_batch()
    g_first, g_rest, d_first, d_rest = 8 * 256, 256 * 256 + 256 * 784, 784 * 256, 256 * 256 + 256
    forward_g, forward_d = g_first + g_rest, d_first + d_rest
    # Of a layer, the gradient of its weights costs its forward pass, and that of its input, which the first one of a
    # network has no use for, once more.
    d_loss = 2 * forward_d + 2 * (2 * forward_d - d_first)  # real and fake
    g_loss = forward_d + forward_d + 2 * forward_g - g_first  # back through D to the fakes, then through G
    assert count(ORDERS["detach"], [generator, discriminator], batch)["flops"] == 2 * 3 * (forward_g + d_loss + g_loss)


def test_the_peak_of_a_step_is_what_one_counts_by_hand():
    x, weight = torch.ones(4, 2), torch.ones(2, 3, requires_grad=True)
    weight.grad = torch.ones(2, 3)
    with StepCost([weight.grad]) as cost:
        y = (x @ weight).tanh()
        assert (cost.bytes, cost.peak) == (4 * (6 + 12), 4 * (6 + 12 + 12))  # gradient, y; and the product before it
        loss = y.view(3, 4).sum()
        weight.grad = None
        assert cost.bytes == 4 * (12 + 1)  # y, loss
        loss.backward()  # at its peak: these, the gradients of loss and product, and the new one of the weight
        assert cost.peak == 4 * (12 + 1 + 1 + 12 + 6)
        del y, loss
    assert cost.bytes == 4 * 6


def test_one_pass_of_the_fakes_with_two_backward_passes_is_cheaper_where_d_is_expensive(compared, capsys):
    result = compared("--what", "ratio")
    assert capsys.readouterr().out.strip().endswith(compare_updates.report(result))
    flops = {name: [*row["flops"].values()] for name, row in result["rows"].items()}
    assert flops[G_FIRST] == [1, 1]
    small, big = flops[ONE_PASS]
    assert small > 1 > big > flops["simultaneous"][1]


def test_the_comparison_prints_its_rows_and_writes_them(compared, capsys):
    result = compared("--model", "mlp")
    printed, rows = capsys.readouterr().out, result["rows"]
    assert printed.strip().endswith(compare_updates.report(result))
    assert "output" not in result["options"]  # a path of this machine
    for name, row in rows.items():
        assert row["ms"][0] > 0
        if ORDERS[name].is_exact:
            assert row["needed"] is None
            assert re.search(rf"\| {row['flops'] / 1e9:.3g} +\| -  ", printed)
        else:
            assert row["flops"] >= row["needed"] > 0
    assert f"| {5 * rows['wgan_gp']['ms'][0]:.2f} (" in printed  # from one step of G to the next
    assert f"| {rows['detach']['memory'] / 2**20:.1f} " in printed


OWN = """
import torch
from torch import nn

def make_networks(shape, z_dim):
    generator = nn.Sequential(nn.Linear(z_dim, 16), nn.BatchNorm1d(16), nn.Unflatten(1, (1, 4, 4)))
    return generator, nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.BatchNorm1d(5), nn.Linear(5, 1))

def wrong(shape, z_dim):
    return make_networks(shape, z_dim)[0], nn.Linear(7, 1)

def functions(shape, z_dim):
    return make_networks(shape, z_dim)[0], lambda images: images.mean(1)

def dcgan(shape, z_dim):
    return nn.ConvTranspose2d(z_dim, 1, 4), make_networks(shape, z_dim)[1]

def lazy(shape, z_dim):
    return nn.Sequential(nn.LazyLinear(16), nn.Unflatten(1, (1, 4, 4))), make_networks(shape, z_dim)[1]

def with_labels(shape, z_dim):
    return make_networks(shape, z_dim)[0], nn.Bilinear(16, 1, 1)

def sparse(shape, z_dim):
    return make_networks(shape, z_dim)[0], Sparse()

class Sparse(nn.Linear):
    def __init__(self):
        super().__init__(16, 1)

    def forward(self, images):
        return torch.sparse.mm(images.flatten(1).detach().to_sparse(), self.weight.T) + 0 * images.sum()
"""


def test_own_networks_are_compared_and_what_cannot_be_trained_says_why(compared, tmp_path, capsys, refusal):
    make_images(tmp_path, 4)
    own = tmp_path / "own.py"
    own.write_text(OWN)
    options = "--dataset", tmp_path, "--image-size", 4, "--networks"
    rows = compared(*options, f"{own}:make_networks")["rows"]
    refused = {"one_stage", *(name for name in ORDERS if name.startswith(("wgan_gp", "r3")))}
    assert {name for name, row in rows.items() if "why" in row} == refused
    assert "depends on the other samples of the batch" in rows["one_stage"]["why"]
    assert rows["retain_graph"]["flops"] > rows["retain_graph"]["needed"] == rows["detach"]["flops"] > 0
    assert rows["generator_first"]["needed"] == rows["simultaneous"]["needed"]
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("depends on the other samples of the batch") == 1  # for all who say so
    assert f"No row for {'; '.join(name for name in rows if name in refused)}: {rows['one_stage']['why']}" in printed

    call("compare_updates", "--batch-size", 3, "--repeats", 0, "--device", "cpu", *options, f"{own}:lazy")

    said = {"wrong": "trained: mat1 and mat2 shapes", "dcgan": "begin the generator with nn.Unflatten(1, (64, 1, 1))"}
    said |= {"functions": "two nn.Modules", "with_labels": "positional argument", "sparse": "counted: Cannot access"}
    for function, words in said.items():
        line = refusal("compare_updates", *options, f"{own}:{function}", "--device", "cpu")
        assert f"own.py:{function}: " in line
        assert words in line


def test_flops_and_memory_are_counted_without_a_clock(compared, monkeypatch, capsys):
    monkeypatch.setattr(harness, "clock", None)
    rows = compared("--model", "mlp", "--repeats", 0)["rows"]
    printed = capsys.readouterr().out
    assert f"| {rows['detach']['flops'] / 1e9:.3g} " in printed
    assert "counted, not timed." in printed and "| ms" not in printed


def test_bad_options_are_refused_before_anything_is_measured(monkeypatch, tmp_path, refusal):
    monkeypatch.setattr(compare_updates, "images_and_networks", None)
    (tmp_path / "mine.json").touch()
    for option in (f"--output {tmp_path / 'mine.json'}", "--output table.md", "--repeats=-1"):
        assert option in refusal("compare_updates", *option.split())
    assert "--what=ratio" in refusal("compare_updates", "--what=ratio", "--model=mlp")
