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
from functools import partial
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.run.command_line import launch
from common.run.folder import write_whole

GREY = "#7a818b"  # text and axes
BLUE, ORANGE, GREEN, PURPLE, RED = "#3b82d0", "#d9822b", "#3f9a5f", "#9a6dd0", "#d0484f"
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
LINES = {
    "detach": (BLUE, "-"),
    "retain_graph": (BLUE, ":"),
    "resample": (GREEN, "-"),
    "generator_first": (ORANGE, "-"),
    "simultaneous": (ORANGE, ":"),
    "one_stage": (RED, "-"),
}


@dataclass(frozen=True)
class Options:
    """Options of the pictures."""

    folder: Path = ROOT / "runs" / "figures"
    """Where cost.json, modes.json and quality.json are, and where the pictures are written."""


def draw_cost(result: dict, figure: Figure) -> None:
    """Draw two bars for each update order: the arithmetic of a step, needed and wasted, and its time."""
    orders = result["rows"]
    left, right = figure.subplots(1, 2, sharey=True)
    needed = [order["needed"] / 1e9 for order in orders.values()]
    wasted = [(order["flops"] - order["needed"]) / 1e9 for order in orders.values()]
    left.barh([*orders], needed, color=BLUE, height=0.7, label="needed")
    left.barh([*orders], wasted, left=needed, color=RED, height=0.7, label="wasted")
    right.barh([*orders], [order["ms"] for order in orders.values()], color=BLUE, height=0.7)
    for name, order in orders.items():
        right.plot(order["quartiles"], [name, name], color=ORANGE, linewidth=1.5)
    left.invert_yaxis()
    left.legend()
    left.set_xlabel("GFLOPs a step, counted")
    right.set_xlabel("ms a step: median, and quartiles as a line")


def draw_modes(result: dict, figure: Figure) -> None:
    """Draw a point for each run: its modes, and the reverse KL divergence of its samples."""
    runs = result["runs"]
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, column in ((left, "modes"), (right, "reverse_kl")):
        for place, points in enumerate([run[-1][column] for run in each] for each in runs.values()):
            axes.plot([min(points), max(points)], [place, place], color=GREY, linewidth=1)
            axes.plot(points, [place] * len(points), "o", color=BLUE, markersize=4)
            axes.plot([median(points)], [place], "|", color=ORANGE, markersize=14, markeredgewidth=2)
    left.set_yticks(range(len(runs)), runs)
    left.invert_yaxis()
    left.set_xlim(0, 1000)
    left.set_xlabel(f"modes of 1,000 after {result['options']['seconds']:g} s; a point is a seed")
    right.set_xlim(left=0)
    right.set_xlabel("reverse KL, 0 is best; a bar is the median")


def common_steps(runs: list[list[dict]]) -> list[int]:
    """Return the steps, before the end, at which every run of an order was judged."""
    return sorted(set.intersection(*({point["steps"] for point in run[:-1]} for run in runs)))


def draw_quality(result: dict, figure: Figure) -> None:
    """Draw a line for each update order: the median over the seeds, in a band from the smallest to the largest.

    The points are the steps that all seeds reached, and the end of the runs.
    """
    left, right = figure.subplots(1, 2)
    for name, runs in result["runs"].items():
        color, line = LINES.get(name, (PURPLE, "-"))
        points_by_step = [[p for run in runs for p in run if p["steps"] == step] for step in common_steps(runs)]
        points_by_step.append([run[-1] for run in runs])
        seconds = [median(p["seconds"] for p in points) for points in points_by_step]
        for axes, column, unit in ((left, "confident", 100), (right, "fid", 1)):
            values = [[p[column] * unit for p in points] for points in points_by_step]
            axes.fill_between(seconds, [*map(min, values)], [*map(max, values)], color=color, alpha=0.12, linewidth=0)
            axes.plot(seconds, [*map(median, values)], line, color=color, marker="o", markersize=2.5, label=name)
    left.set_ylabel("confident digits, %")
    right.set_ylabel("FID, of the digit classifier's features")
    right.set_yscale("log")
    limits = right.get_ylim()
    right.set_yticks([1, 2, 3, 5, 10, 20, 50, 100])
    right.minorticks_off()
    right.yaxis.set_major_formatter("{x:g}")
    right.set_ylim(*limits)
    for axes in (left, right):
        axes.set_xlabel("seconds of training")
    seeds = max(map(len, result["runs"].values()))
    figure.legend(
        handles=left.get_legend_handles_labels()[0],
        loc="outside upper center",
        ncols=len(result["runs"]),
        title=f"medians of {seeds} seeds, in bands from the smallest to the largest",
    )


PICTURES = {"cost": (draw_cost, (8.6, 3.8)), "modes": (draw_modes, (8.6, 2.9)), "quality": (draw_quality, (8.6, 3.6))}


def main(options: Options) -> None:
    """Draw the pictures."""
    for name, (draw, inches) in PICTURES.items():
        measured = json.loads((options.folder / f"{name}.json").read_text())
        picture = options.folder / f"{name}.svg"
        with mpl.rc_context(STYLE):
            figure = Figure(inches)
            draw(measured, figure)
            write_whole(picture, partial(figure.savefig, format="svg", metadata={"Date": None}))
        print(f"Written: {picture}")


if __name__ == "__main__":
    launch(main, Options)
