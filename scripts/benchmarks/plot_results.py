"""Draw the pictures of the README from what the comparisons measured: cost, and quality over seconds of training.

The files in `runs/figures/` come from these commands, the second with the options in `docs/results.md`; move the old
files away first. The measurements take forty minutes on two cores. Needs matplotlib.

    python scripts/benchmarks/compare_updates.py --output runs/figures/cost.json
    python scripts/benchmarks/compare_modes.py ... --output runs/figures/quality.json
    python scripts/benchmarks/plot_results.py

The pictures are SVG files, without a background, in colours that can be seen on white and on black.
"""

import json
import sys
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.errors import as_bad_input, as_stopped
from common.options import Options
from scripts.benchmarks.harness import ROOT
from scripts.tools.output import launch

FIGURES = ROOT / "runs" / "figures"
GREY = "#7a818b"  # text and axes
BLUE, ORANGE, RED = "#3b82d0", "#d9822b", "#d0484f"
STYLE = {
    "svg.fonttype": "none",  # text stays text: small files
    "svg.hashsalt": "figures",  # the same file from the same figures
    "font.size": 9,
    "axes.titlesize": 9,
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], GREY),
    **dict.fromkeys(["axes.spines.top", "axes.spines.right", "legend.frameon"], False),
    **dict.fromkeys(["savefig.transparent", "figure.constrained_layout.use"], True),
}


def draw_cost(result: dict, figure: Figure) -> None:
    """Draw two bars for each update order: the arithmetic of a step, needed and redundant, and its time."""
    orders = result["rows"]
    left, right = figure.subplots(1, 2, sharey=True)
    for name, order in orders.items():
        needed = order["needed"] or order["flops"]  # None where it is not known
        left.barh(name, needed / 1e9, color=BLUE, height=0.7)
        left.barh(name, (order["flops"] - needed) / 1e9, left=needed / 1e9, color=RED, height=0.7)
        right.barh(name, median(order["ms"]), color=BLUE, height=0.7)
        right.plot([min(order["ms"]), max(order["ms"])], [name, name], color=ORANGE, linewidth=1.5)
    left.set_xlim(0, 1.05 * max(order["flops"] for order in orders.values()) / 1e9)  # the longest bar ends inside
    left.invert_yaxis()
    left.legend(["needed", "redundant"], loc="center right", bbox_to_anchor=(1, 0.3))
    left.set_xlabel("GFLOPs a step, counted")
    right.set_xlabel("ms a step: median, smallest to largest")


def draw_quality(result: dict, figure: Figure) -> None:
    """Draw a panel for each update order: the target, and the FID of its runs, and in grey of all others, over time."""
    orders, target = result["runs"], result["options"]["target"]
    panels = figure.subplots(1, len(orders), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, orders, strict=True):
        for order, runs in orders.items():
            style = {"color": BLUE, "zorder": 3} if order == name else {"color": GREY, "alpha": 0.7, "linewidth": 0.7}
            for run in runs:
                axes.plot([p["seconds"] for p in run], [p["fid"] for p in run], **style)
        axes.axhline(target, color=ORANGE, linewidth=1)
        last = median(run[-1]["fid"] for run in orders[name])
        axes.set_title(f"{name}\n{last:.1f} at the end")
    panels[0].set_ylabel("FID, of the classifier's features")
    panels[0].set_yscale("log", subs=[])
    panels[0].set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    figure.supxlabel(f"seconds of training; a line is a seed; orange: FID {target:g}", fontsize=9)


PICTURES = {"cost": (draw_cost, (8.6, 4.6)), "quality": (draw_quality, (8.6, 3.2))}


def main(options: Options) -> None:
    """Draw the pictures."""
    for name, (draw, inches) in PICTURES.items():
        measured, picture = FIGURES / f"{name}.json", FIGURES / f"{name}.svg"
        with mpl.rc_context(STYLE):
            figure = Figure(inches)
            with as_bad_input(f"{measured}: cannot be drawn", Exception):
                draw(json.loads(measured.read_text()), figure)
            with as_stopped(picture):
                figure.savefig(picture, metadata={"Date": None})
        print(f"Written: {picture}")


if __name__ == "__main__":
    launch(main, Options)
