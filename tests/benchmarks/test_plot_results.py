"""The pictures and tables of results show what the comparisons measured."""

import json
import re

from helpers import call

from scripts.benchmarks import compare_modes, compare_updates
from scripts.benchmarks.plot_results import PICTURES, ROOT

FIGURES = ROOT / "runs" / "figures"


def test_the_shipped_pictures_are_drawn_from_the_shipped_figures(tmp_path):
    shipped_names = [name for name in PICTURES if (FIGURES / f"{name}.json").exists()]
    for name in shipped_names:
        (tmp_path / f"{name}.json").write_bytes((FIGURES / f"{name}.json").read_bytes())
    call("plot_results", "--folder", tmp_path)
    for name in shipped_names:
        drawn, shipped = (words((folder / f"{name}.svg").read_text()) for folder in (tmp_path, FIGURES))
        assert drawn == shipped
        figures = json.loads((FIGURES / f"{name}.json").read_text())
        assert set(figures.get("rows", figures.get("runs"))) <= set(shipped)


def words(picture):
    """Return the texts of an SVG picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_the_page_of_results_has_the_tables_of_the_shipped_figures_which_tell_no_path_of_the_machine():
    page = (ROOT / "docs" / "results.md").read_text()
    figures = {path.stem: json.loads(path.read_text()) for path in FIGURES.glob("*.json")}
    assert compare_updates.report(figures["cost"]) in page
    for name in figures.keys() - {"cost"}:
        assert compare_modes.report(figures[name]) in page
    assert [name for name in figures if {"output", "runs_dir"} & figures[name]["options"].keys()] == []
