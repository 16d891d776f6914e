"""Draw what the comparisons measured as pictures for a page: cost, and quality over seconds of training.

Each of the files comes from a command, the last with the options in `docs/results.md`; those that are there are drawn.
Needs matplotlib.

    mkdir figures
    python scripts/benchmarks/compare_updates.py --output figures/cost.json
    python scripts/benchmarks/compare_modes.py ... --output figures/quality.json
    python scripts/benchmarks/plot_results.py --folder figures

The measurements take forty minutes on two cores. The pictures are SVG files beside the measured files, without a
background, in colours that can be seen on white and on black. Without --folder, those of the README are drawn again.
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

from common.errors import BadInput, as_bad_input, as_stopped
from common.options import Options as BaseOptions
from scripts.tools.output import launch

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


@dataclass(frozen=True)
class Options(BaseOptions):
    """Options of the pictures."""

    folder: Path = ROOT / "runs" / "figures"
    """Where the .json files are, and where the pictures are written."""


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
    left.set_xlim(0, 1.05 * max(order["flops"] for order in orders.values()) / 1e9)  # the longest bar ends inside
    left.invert_yaxis()
    left.legend(["needed", "wasted"], loc="center right", bbox_to_anchor=(1, 0.3))
    left.set_xlabel("GFLOPs a step, counted")
    right.set_xlabel("ms a step: median, smallest to largest")


def draw_quality(result: dict, figure: Figure) -> None:
    """Draw a panel for each update order: the FID of each of its runs over the seconds of training, and the target.

    Grey lines are the runs of the other orders.
    """
    orders, target = result["runs"], result["options"]["target"]
    if target is None:
        raise ValueError("made without --target, so it has no FID over time; measure it with one")
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
    """Draw the pictures of the files that are there."""
    files = [options.folder / f"{name}.json" for name in PICTURES]
    if not any(file.exists() for file in files):
        raise BadInput(f"--folder {options.folder}: holds none of {', '.join(file.name for file in files)}")
    for name in [file.stem for file in files if file.exists()]:
        draw, inches = PICTURES[name]
        measured, picture = options.folder / f"{name}.json", options.folder / f"{name}.svg"
        with mpl.rc_context(STYLE):
            figure = Figure(inches)
            with as_bad_input(f"{measured}: cannot be drawn", Exception):
                draw(json.loads(measured.read_text()), figure)
            with as_stopped(picture):
                figure.savefig(picture, metadata={"Date": None})
        print(f"Written: {picture}")


if __name__ == "__main__":
    launch(main, Options)
