"""The comparison counts what its docstring says, measures like with like, and reports it."""

import json
import re
from dataclasses import replace

import pytest
import torch
from helpers import call

from common.errors import BadInput
from common.models import MODELS
from scripts import gan_detach, gan_generator_first
from scripts.benchmarks import compare_updates
from scripts.benchmarks.compare_updates import BASELINE, ORDERS, Contender, Options, dot, forward_costs
from scripts.benchmarks.step_cost import PHASES, Flops, count_flops

CPU = torch.device("cpu")


def contender(train_step, model="mlp", size=28, batch_size=3):
    """Return a contender that has made a step, and a batch."""
    torch.manual_seed(0)
    made = Contender(train_step, *MODELS[model]((1, size, size), 8))
    batch = torch.rand(batch_size, 1, size, size) * 2 - 1, torch.randn(batch_size, 8)
    for _ in range(5):  # the longest period
        made.step(*batch)
    return made, batch


@pytest.mark.parametrize(
    ("model", "size", "batch_size"), [("mlp", 28, 3), ("mlp", 11, 2), ("conv", 28, 3), ("conv", 64, 2)]
)
@pytest.mark.parametrize("name", ORDERS)
def test_counted_flops_equal_the_formula(name, model, size, batch_size):
    made, batch = contender(ORDERS[name].train_step, model, size, batch_size)
    period = ORDERS[name].period
    all_of_it = [period * multiple for multiple in ORDERS[name].cost]
    assert [round(multiple) for multiple in all_of_it] == pytest.approx(all_of_it, rel=1e-12)
    expected = dot(all_of_it, forward_costs(*made.networks, *batch))
    assert count_flops(lambda: made.steps(period, *batch)) == expected


def test_the_docstring_has_the_formulas():
    for name, order in ORDERS.items():
        *parts, total, needed = documented(name)
        terms = [multiples(part) for part in parts]
        cost = multiples(total)
        assert cost == whole(order.cost)
        assert cost == pytest.approx([sum(column) for column in zip(*terms, strict=True)], abs=1e-12)
        expected = {"the sum": cost, "detach's": whole(ORDERS["detach"].cost), "less s": (*cost[:5], 0)}
        assert whole(order.needed) == expected[needed]


@pytest.mark.parametrize("name", ORDERS)
def test_each_phase_takes_the_flops_of_its_column(name):
    made, batch = contender(ORDERS[name].train_step, "conv")
    forward, period = forward_costs(*made.networks, *batch), ORDERS[name].period
    columns = [multiples(part) for part in documented(name)[:3]]
    with Flops() as counter:
        phases = made.phases(period, *batch, lambda: counter.total)
    expected = [dot([period * multiple for multiple in column], forward) / period for column in columns]
    assert phases == dict(zip(PHASES, [*expected, 0], strict=True))


def test_phases_leave_nothing_behind():
    made, batch = contender(gan_detach.train_step)
    before = torch.autograd.backward, torch.autograd.grad
    made.phases(1, *batch, lambda: 0)
    assert (torch.autograd.backward, torch.autograd.grad) == before
    assert not any(network._forward_hooks or network._forward_pre_hooks for network in made.networks)


def documented(name):
    """Return the columns of an order's line in the docstring."""
    line = next(line for line in compare_updates.__doc__.splitlines() if line.strip().startswith(name + "  "))
    return re.split(r"\s{3,}", line.strip())[1:]


def whole(cost):
    """Return all six multiples of a cost."""
    return (*cost, 0, 0)[:6]


def multiples(formula):
    """Return the multiples of G, D, g, d, l and s in, say, `3G + 8.4D -  g - 2d`."""
    found = {letter: 0 for letter in "GDgdls"}
    for sign, number, letter in re.findall(r"([+-]?)\s*([\d.]*)([GDgdls])", formula):
        found[letter] += float(f"{sign}{number or 1}")
    return tuple(found.values())


def test_only_retain_graph_and_the_textbook_cost_more_than_they_need():
    wasteful = {name for name, order in ORDERS.items() if order.cost[:5] != order.needed}
    assert wasteful == {"retain_graph", "detach, textbook", "generator_first, textbook"}


def test_one_stage_needs_at_most_0_66_of_the_flops_of_retain_graph():
    generator, discriminator = MODELS["conv"]((1, 28, 28), 64)
    forward = forward_costs(generator, discriminator, torch.zeros(2, 1, 28, 28), torch.zeros(2, 64))
    assert dot(ORDERS["one_stage"].cost, forward) <= 0.66 * dot(ORDERS["retain_graph"].cost, forward)


@pytest.mark.numerics
@pytest.mark.parametrize(("name", "script"), [("detach", gan_detach), ("generator_first", gan_generator_first)])
def test_the_textbook_ends_with_the_same_weights_to_the_bit(name, script):
    """Each gradient that is used comes from the same operations on the same shapes; the textbook computes more."""
    ours, batch = contender(script.train_step)
    theirs, _ = contender(ORDERS[f"{name}, textbook"].train_step)
    for made in (ours, theirs):
        made.step(*batch)
    for one, other in zip(ours.networks, theirs.networks, strict=True):
        assert all(p.equal(q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


def test_the_audit_names_what_is_wasted():
    wasted = {}
    for name, order in ORDERS.items():
        made, batch = contender(order.train_step)
        wasted[name] = made.wasted(order.period, *batch)
    assert wasted.pop("retain_graph") == "G by `d_loss.backward(retain_graph=True)`, D by `g_loss.backward()`"
    assert wasted.pop("detach, textbook") == wasted.pop("generator_first, textbook") == "D by `g_loss.backward()`"
    assert set(wasted.values()) == {""}


@pytest.mark.tools
@pytest.mark.parametrize("model", MODELS)
def test_peak_memory_is_the_same_on_every_run_and_least_where_the_generators_graph_is_gone(model):
    peaks = []
    for _ in range(2):
        peaks.append({})
        for name, order in ORDERS.items():
            made, batch = contender(order.train_step, model, batch_size=16)
            peaks[-1][name] = made.peak_bytes(order.period, *batch)
    first, second = peaks
    assert first == second
    assert first["generator_first"] < first["detach"] < first["retain_graph"]
    assert all(peak > sum(t.nbytes for t in made.tensors()) for peak in first.values())


def test_all_orders_start_from_the_same_weights_and_see_the_same_batches(monkeypatch):
    seen = {name: [] for name in ORDERS}

    def spy(name, train_step):
        def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
            weights = [] if seen[name] else [p.detach().clone() for p in generator.parameters()]
            seen[name].append([*weights, real, z])
            return train_step(generator, discriminator, optimizer_g, optimizer_d, real, z)

        return step

    for name, order in ORDERS.items():
        spied = replace(order, train_step=spy(name, order.train_step))
        monkeypatch.setitem(ORDERS, name, spied)
    rows = compare_updates.measure("mlp", 28, 2, 2, CPU)
    assert list(rows) == list(ORDERS)
    timed = 2 * (1 + compare_updates.STEPS_PER_TURN)
    counted, by_phase = ({name: count * order.period for name, order in ORDERS.items()} for count in (4, 2))
    assert {name: len(steps) for name, steps in seen.items()} == {
        name: counted[name] + timed + by_phase[name] for name in ORDERS
    }
    compared = {name: [steps[0], *steps[counted[name] :][:timed]] for name, steps in seen.items()}
    reference = compared.pop(BASELINE)
    for steps in compared.values():
        for ours, theirs in zip(steps, reference, strict=True):
            assert all(a.equal(b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.tools
def test_tables_in_the_terminal_and_in_both_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare_updates, "GROWTH_REPEATS", 1)
    files = tmp_path / "table.md", tmp_path / "table.json"
    monkeypatch.chdir(tmp_path)
    options = "--model mlp --batch-size 2 --repeats 2 --doublings 1 --device cpu"
    call("compare_updates", *options.split(), "--output", "table.md", "table.json")
    text, result = files[0].read_text(), json.loads(files[1].read_text())
    assert text in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == sorted(files)

    assert "output" not in result["options"]  # a path of this machine
    for name, row in result["orders"].items():
        assert row["flops"] >= row["needed"] > 0
        assert row["quartiles"][0] <= row["ms"] <= row["quartiles"][1]
        assert row["speed_quartiles"][0] <= row["speed"] <= row["speed_quartiles"][1]
        assert sum(row["flops_by_phase"].values()) == pytest.approx(row["flops"])
        assert all(ms > 0 for ms in row["ms_by_phase"].values())
        assert row["images_per_second"] == pytest.approx(2 / (row["ms"] / 1e3))
        assert f"| {name} " in text
    assert result["orders"][BASELINE]["speed"] == 1
    assert torch.__version__ in text
    assert {"batch size", "image size"} == set(result["growth"])
    for orders in result["growth"].values():
        assert all(len(row["ms"]) == 2 for row in orders.values())
    assert all(row["exponent of flops"] == pytest.approx(1) for row in result["growth"]["batch size"].values())


@pytest.mark.tools
def test_the_growth_can_be_left_out(capsys):
    call("compare_updates", *["--model", "mlp", "--batch-size", "2", "--repeats", "1", "--doublings", "None"])
    assert capsys.readouterr().out.count("| one_stage ") == 1


BAD_OPTIONS = {
    "--output table.txt": "--output table.txt: must end in .md or .json",
    "--output no/such/folder/table.md": "there is no folder no/such/folder",
    "--image-size 30": "--image-size 30",
    "--image-size 128 --doublings 2": "--doublings 2: takes the images too far",
    "--repeats 0": "--repeats 0",
    "--batch-size -1": "--batch-size -1",
    "--device cuda:99": "--device cuda:99",
    "--model gan": "--model",
}


@pytest.mark.parametrize(("arguments", "named"), BAD_OPTIONS.items())
def test_bad_options_are_refused_in_one_line_before_anything_is_measured(arguments, named, monkeypatch, refusal):
    monkeypatch.setattr(compare_updates, "measure", None)
    assert named in refusal("compare_updates", *arguments.split())


def test_a_file_that_exists_is_refused_and_stays(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(BadInput, match=r"README\.md: exists already"):
        compare_updates.main(Options(output=(tmp_path / "new.json", tmp_path / "README.md")))
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"
