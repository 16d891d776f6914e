"""The pictures and tables of results show what the comparisons measured."""

import json
import re

from helpers import ROOT, call
from matplotlib.figure import Figure

from scripts.benchmarks import compare_modes, compare_updates, plot_results
from scripts.benchmarks.plot_results import FIGURES, PICTURES, draw_cost


def test_the_shipped_pictures_are_drawn_from_the_shipped_figures(tmp_path, monkeypatch):
    for name in PICTURES:
        (tmp_path / f"{name}.json").write_bytes((FIGURES / f"{name}.json").read_bytes())
    monkeypatch.setattr(plot_results, "FIGURES", tmp_path)
    call("plot_results")
    for name in PICTURES:
        drawn, shipped = (words((folder / f"{name}.svg").read_text()) for folder in (tmp_path, FIGURES))
        assert drawn == shipped
        figures = json.loads((FIGURES / f"{name}.json").read_text())
        assert set(figures.get("rows", figures.get("runs"))) <= set(shipped)


def test_a_bar_is_as_long_as_what_is_needed_and_its_red_end_as_what_is_redundant():
    figure, ms = Figure(), [1.0, 3.0, 2.0]
    rows = {"retain_graph": {"flops": 5e9, "needed": 3e9, "ms": ms}, "r3": {"flops": 2e9, "needed": None, "ms": ms}}
    draw_cost({"rows": rows}, figure)
    bars, times = ([(bar.get_x(), bar.get_width()) for bar in axes.patches] for axes in figure.axes)
    assert bars == [(0, 3), (3, 2), (0, 2), (2, 0)]
    assert times == [(0, 2), (0, 2)]
    assert len({bar.get_facecolor() for bar in figure.axes[0].patches}) == 2


def words(picture):
    """Return the texts of an SVG picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_the_page_of_results_has_the_tables_of_the_shipped_figures_which_tell_no_path_of_the_machine():
    page = (ROOT / "docs" / "results.md").read_text()
    figures = {path.stem: json.loads(path.read_text()) for path in FIGURES.glob("*.json")}
    for name in figures:
        assert (compare_modes if name == "quality" else compare_updates).report(figures[name]) in page
    assert [name for name in figures if {"output", "runs_dir"} & figures[name]["options"].keys()] == []
