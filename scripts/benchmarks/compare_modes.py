"""What an update order or a penalty does to the samples of a GAN.

Every script trains with its own default options, in a process of its own, and `evaluate.py` judges its samples: FID,
precision, recall; of digits the share of confident ones and that of the rarest, too. The scripts take turns, with one
seed after the other, so that a slow phase of the machine meets them all. A column has the seconds of training until a
checkpoint first had the FID `--target`, of the runs that reached it.

    python scripts/benchmarks/compare_modes.py --dataset fashion-mnist --seeds 5
    python scripts/benchmarks/compare_modes.py --orders detach r3 wgan_gp

A row has medians over the seeds, with the smallest and the largest in brackets. The runs, with their sample grids and
what `evaluate.py` has written, stay in `--runs-dir`.
"""

import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.checkpoint import lock
from common.errors import BadInput, as_bad_input, counted
from common.launch import pick_device
from common.options import Count, NetworkOptions, Weight, typed
from scripts.benchmarks import harness
from scripts.tools import evaluate, real_images
from scripts.tools.output import check_new_file, launch, table

ORDERS = ["detach", "retain_graph", "generator_first", "simultaneous", "resample", "one_stage", "wgan_gp", "r3"]
COLUMNS = {"fid": ".2f", "precision": ".1%", "recall": ".1%", "confident": ".1%", "rarest": ".1%"}  # and their format
COLUMNS |= {"steps": ",.0f", "seconds": ".1f", "seconds_to_target": ".1f"}
STARTED = "samples/step-000000.png"  # written right before the first step


@dataclass(frozen=True)
class Options(NetworkOptions):
    """Options of the comparison."""

    orders: tuple[Literal[tuple(ORDERS)], ...] = tuple(ORDERS)  # The scripts, without gan_.
    steps: Count | None = None  # Steps of each run. None: the script's default.
    seeds: Count = 3  # Runs of each script, with seeds 0, 1, ...
    runs_dir: Path = harness.ROOT / "runs" / "compare_modes"  # Where the runs are made.
    target: Weight = 5.0  # An FID: a column has the seconds of training until a checkpoint first had it, or less.
    evaluate_every: Count = 250  # Steps between two checkpoints whose FID is measured, of those 0.1 s apart or more.
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.
    output: Path | None = None  # New .json file for all figures of all runs, which plot_results.py draws.


def train(order: str, seed: int, options: Options, runs: Path) -> list[tuple[Path, float]]:
    """Train with a script in `runs`; return its checkpoints in order, each with the seconds since the first step."""
    arguments = [typed("seed", seed), typed("checkpoint_every", options.evaluate_every)]
    names = ("dataset", "image_size", "model", "z_dim", "steps", "device")
    arguments += [typed(name, value) for name in names if (value := getattr(options, name)) is not None]
    script = harness.ROOT / "scripts" / f"gan_{order}.py"
    run = harness.run_script(script, arguments, runs, Path(), link_checkpoint)
    start = (run / STARTED).stat().st_mtime
    checkpoints = {path.stat().st_mtime: path for path in (*run.glob("checkpoint-*.pt"), run / "checkpoint.pt")}
    return [(path, time - start) for time, path in sorted(checkpoints.items())]


def link_checkpoint(run: Path) -> None:
    """Give the checkpoint of a run, if there is one yet, a second name, which the next checkpoint leaves as it is."""
    checkpoint = run / "checkpoint.pt"
    with suppress(FileNotFoundError, FileExistsError), as_bad_input("--runs-dir: has no hard links", PermissionError):
        os.link(checkpoint, run / f"checkpoint-{checkpoint.stat().st_mtime_ns}.pt")


def report(result: dict) -> str:
    """Return the table: for each order, and for real images, medians over the seeds, smallest and largest in brackets.

    The figures of an order are those at the end of its runs, but for the seconds to the target.
    """
    ends = {order: [run[-1] for run in runs] for order, runs in result["runs"].items()}
    everything = [figures for seeds in ends.values() for figures in seeds]
    columns = {name: form for name, form in COLUMNS.items() if any(name in figures for figures in everything)}
    rows = []
    for name, seeds in (ends | {"real images": result["real images"]}).items():
        rows.append([name])
        for column, form in columns.items():
            values = [figures[column] for figures in seeds if column in figures]
            rows[-1].append(harness.spread(values, form) if values else "")
            rows[-1][-1] += f" in {len(values)} of {len(seeds)}" if 0 < len(values) < len(seeds) else ""
    return table(["update order", *(name.replace("_", " ") for name in columns)], rows)


def main(options: Options) -> None:
    """Train, evaluate, and print the table."""
    if not options.orders:
        raise BadInput("--orders: needs a value")
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    real_images.load_real(options.dataset, options.image_size)  # refused before the training if there are too few
    runs, floors = {order: [] for order in options.orders}, []
    folder = options.runs_dir / Path(options.dataset).resolve().name
    with as_bad_input(f"--runs-dir {options.runs_dir}: cannot be made", OSError):
        folder.mkdir(parents=True, exist_ok=True)
    opened = ExitStack()  # until this ends: another comparison would take our runs for its own
    lock(folder, opened)
    turns = [(order, seed) for seed in range(options.seeds) for order in options.orders]
    for order, seed in tqdm(turns, "runs", unit="run"):
        points = []
        for checkpoint, seconds in train(order, seed, options, folder):
            own = evaluate.Options(checkpoint, device=options.device)
            entry = evaluate.evaluate_run(own, only_fid=checkpoint.name != "checkpoint.pt")
            points.append(entry.get("samples", entry) | {"steps": entry["step"], "seconds": seconds})
        evaluate.add_to_run(own, entry)
        reached = [point["seconds"] for point in points if point["fid"] <= options.target]
        points[-1] |= {"seconds_to_target": reached[0]} if reached else {}
        runs[order].append(points)
        floors.append(entry["floor"])
    of_all = {name: entry[name] for name in ("count", "real", "features")}  # on which an FID depends
    compared = "{count:,} samples, compared with {real} images; features: {features}".format(**of_all)
    caption = f"medians of {counted(options.seeds, 'seed')}, smallest and largest in brackets; {compared}"
    harness.present(options, device, of_all | {"runs": runs, "real images": floors}, caption, report)
    print(f"\nRuns: {folder}")


if __name__ == "__main__":
    launch(main, Options)
