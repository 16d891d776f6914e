"""The pictures and tables of results show what the comparisons measured."""

import json
import re

import pytest
from helpers import call

from scripts.benchmarks import compare_modes, compare_updates
from scripts.benchmarks.plot_results import ROOT, common_steps, segments

FIGURES = ROOT / "runs" / "figures"


def cost(forward, back, rest, needed):
    total = forward + back + rest
    phases = {"forward": forward, "back through D": back, "back through G": 0, "the rest": rest}
    return {"flops": total, "needed": needed, "flops_by_phase": phases, "ms": 2 * total, "ms_by_phase": phases}


def test_wasted_is_what_an_order_takes_beyond_the_one_that_makes_the_same_update_and_wastes_nothing():
    orders = {"kept": cost(3, 9, 1, needed=10), "detached": cost(3, 6, 1, needed=10), "other": cost(1, 1, 1, needed=2)}
    lean = {"forward": 3, "back through D": 6, "back through G": 0, "the rest": 1}
    assert segments(orders, "kept", "flops") == lean | {"wasted": 3}
    assert segments(orders, "detached", "flops") == lean | {"wasted": 0}
    assert segments(orders, "kept", "ms") == {name: 2 * part for name, part in lean.items()} | {"wasted": 6}


def test_without_an_order_that_makes_the_same_update_arithmetic_alone_is_told_to_be_wasted():
    orders = {"alone": cost(3, 9, 1, needed=11)}
    phases = {"forward": 3, "back through G": 0, "the rest": 1}
    assert segments(orders, "alone", "flops") == phases | {"back through D": 7, "wasted": 2}
    assert segments(orders, "alone", "ms")["wasted"] == 0


def test_an_order_that_is_no_slower_than_the_one_without_waste_is_drawn_without():
    orders = {"kept": cost(3, 9, 1, needed=10) | {"ms": 5}, "detached": cost(3, 6, 1, needed=10) | {"ms": 6}}
    assert segments(orders, "kept", "ms")["wasted"] == 0


def test_only_steps_that_all_seeds_reached_are_compared():
    runs = [[{"steps": steps} for steps in each] for each in ([400, 800, 1003], [400, 1003])]
    assert common_steps(runs) == [400]


def test_the_shipped_pictures_are_drawn_from_the_shipped_figures(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("cost", "modes", "quality"):
        (tmp_path / f"{name}.json").write_bytes((FIGURES / f"{name}.json").read_bytes())
    call("plot_results", "--folder", tmp_path)
    for name in ("cost", "modes", "quality"):
        drawn, shipped = ((folder / f"{name}.svg").read_text() for folder in (tmp_path, FIGURES))
        assert words(drawn) == words(shipped)
        figures = json.loads((FIGURES / f"{name}.json").read_text())
        assert set(figures.get("rows", figures.get("runs"))) <= set(words(shipped))


def words(picture):
    """Return the texts of an SVG picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_the_page_of_results_has_the_tables_of_the_shipped_figures():
    page = (ROOT / "docs" / "results.md").read_text()
    assert compare_updates.report(json.loads((FIGURES / "cost.json").read_text())).strip() in page
    for name in ("quality", "modes", "penalties"):
        assert compare_modes.report(json.loads((FIGURES / f"{name}.json").read_text())) in page


@pytest.mark.parametrize("path", sorted(FIGURES.glob("*.json")), ids=lambda path: path.stem)
def test_shipped_figures_tell_no_path_of_the_machine(path):
    assert not {"output", "runs_dir"} & json.loads(path.read_text())["options"].keys()


@pytest.mark.parametrize("text", ["{", "[]", '{"rows": {"detach": 1}}'])
def test_a_file_of_something_else_is_refused_in_one_line(text, tmp_path, refusal):
    pytest.importorskip("matplotlib")
    (tmp_path / "cost.json").write_text(text)
    assert "cost.json: is not what the comparison writes" in refusal("plot_results", "--folder", tmp_path)


def test_a_folder_without_figures_is_refused_in_one_line(tmp_path, refusal):
    assert "has none of cost.json, modes.json, quality.json" in refusal("plot_results", "--folder", tmp_path)
