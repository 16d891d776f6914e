"""Draw what the comparisons measured as pictures for a page: cost, modes, and quality over seconds of training.

Each of the three files comes from a command. Needs matplotlib.

    mkdir figures
    python scripts/benchmarks/compare_updates.py --output figures/cost.json
    python scripts/benchmarks/compare_modes.py --z-dim 64 --output figures/modes.json
    python scripts/benchmarks/compare_modes.py --dataset mnist5k --seconds 38 --seeds 5 --evaluate-every 400 \
        --orders detach retain_graph generator_first simultaneous resample one_stage --output figures/quality.json
    python scripts/benchmarks/plot_results.py --folder figures

The measurements take an hour on two cores. The pictures are SVG files beside the measured files, without a background,
in colours that can be seen on white and on black. Without --folder, those of the README are drawn again.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.options import Options as BaseOptions
from common.options import launch

GREY = "#7a818b"  # text and axes
BLUE, ORANGE, RED = "#3b82d0", "#d9822b", "#d0484f"
STYLE = {
    "svg.fonttype": "none",  # text stays text: small files
    "svg.hashsalt": "figures",  # the same file from the same figures
    "font.size": 9,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "savefig.transparent": True,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Options(BaseOptions):
    """Options of the pictures."""

    folder: Path = ROOT / "runs" / "figures"
    """Where cost.json, modes.json and quality.json are, and where the pictures are written."""


def draw_cost(result: dict, figure: Figure) -> None:
    """Draw two bars for each update order: the arithmetic of a step, needed and wasted, and its time."""
    orders = result["rows"]
    left, right = figure.subplots(1, 2, sharey=True)
    for name, order in orders.items():
        needed = order["needed"] or order["flops"]  # None where it is not known
        left.barh(name, needed / 1e9, color=BLUE, height=0.7)
        left.barh(name, (order["flops"] - needed) / 1e9, left=needed / 1e9, color=RED, height=0.7)
        right.barh(name, median(order["ms"]), color=BLUE, height=0.7)
        right.plot([min(order["ms"]), max(order["ms"])], [name, name], color=ORANGE, linewidth=1.5)
    left.invert_yaxis()
    left.legend(["needed", "wasted"])
    left.set_xlabel("GFLOPs a step, counted")
    right.set_xlabel("ms a step: median, smallest to largest")


def draw_modes(result: dict, figure: Figure) -> None:
    """Draw a point for each run: its modes, and the reverse KL divergence of its samples."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, column in zip(panels, ("modes", "reverse_kl"), strict=True):
        axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        for name, runs in result["runs"].items():
            points = [run[-1][column] for run in runs]
            axes.plot(points, [name] * len(points), "o-", color=BLUE, markersize=4, linewidth=1)
            axes.plot(median(points), name, "|", color=ORANGE, markersize=14, markeredgewidth=2)
    panels[0].invert_yaxis()
    panels[0].set_xlabel(f"modes of 1,000 after {result['options']['seconds']:g} s, more is better\na point is a seed")
    panels[1].set_xlabel("reverse KL, less is better\na bar is the median")
    panels[1].set_xlim(left=0)


def common_steps(runs: list[list[dict]]) -> list[int]:
    """Return the steps, before the end, at which every run of an order was judged."""
    return sorted(set.intersection(*({point["steps"] for point in run[:-1]} for run in runs)))


def draw_quality(result: dict, figure: Figure) -> None:
    """Draw a column of two panels for each update order: its median over the seeds, from the smallest to the largest.

    Grey lines are the medians of the other orders. The points are the steps that all seeds reached, and the end.
    """
    orders = result["runs"]
    panels = figure.subplots(2, len(orders), sharex=True, sharey="row", squeeze=False)
    for column, (name, runs) in enumerate(orders.items()):
        points = [[p for run in runs for p in run if p["steps"] == step] for step in common_steps(runs)]
        points.append([run[-1] for run in runs])
        seconds = [median(p["seconds"] for p in each) for each in points]
        for row, (figure_name, form) in enumerate({"confident": ".0%", "fid": ".1f"}.items()):
            values = [[p[figure_name] for p in each] for each in points]
            middle = [median(each) for each in values]
            for other in panels[row]:
                other.plot(seconds, middle, color=GREY, alpha=0.35, linewidth=0.7)
            axes = panels[row, column]
            low, high = [min(each) for each in values], [max(each) for each in values]
            axes.fill_between(seconds, low, high, color=BLUE, alpha=0.25, linewidth=0)
            axes.plot(seconds, middle, color=BLUE, marker="o", markersize=2.5, zorder=3)
            end = (seconds[-1], middle[-1])
            axes.annotate(f"{middle[-1]:{form}}", end, (0, 7), textcoords="offset points", ha="right")
        panels[0, column].set_title(name)
    panels[0, 0].set_ylabel("confident digits")
    panels[0, 0].yaxis.set_major_formatter("{x:.0%}")
    panels[1, 0].set_ylabel("FID, of digit features")
    panels[1, 0].set_yscale("log", subs=[])
    panels[1, 0].set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    figure.supxlabel(
        f"seconds of training; blue: median of {result['options']['seeds']} seeds, from the smallest to the largest; "
        "grey: other medians",
        fontsize=9,
    )


PICTURES = {"cost": (draw_cost, (8.6, 3.8)), "modes": (draw_modes, (8.6, 3.3)), "quality": (draw_quality, (8.6, 4.2))}


def main(options: Options) -> None:
    """Draw the pictures."""
    for name, (draw, inches) in PICTURES.items():
        measured = json.loads((options.folder / f"{name}.json").read_text())
        picture = options.folder / f"{name}.svg"
        with mpl.rc_context(STYLE):
            figure = Figure(inches)
            draw(measured, figure)
            figure.savefig(picture, metadata={"Date": None})
        print(f"Written: {picture}")


if __name__ == "__main__":
    launch(main, Options)
