"""What an update order or a penalty does to the modes that a GAN keeps, after the same seconds of training.

Every script trains on stacked digits, which have 1,000 modes, with its own default options, in a process of its own
that is stopped when its seconds are over. `evaluate.py` then counts the modes among 26,000 samples and gives their
reverse KL divergence to the data's. The scripts take turns, with one seed after the other, so that a slow phase of the
machine meets them all. With another `--dataset` it is the quality of single images that is compared: FID, precision,
recall; of digits the share of confident ones and that of the rarest, too.

    python scripts/benchmarks/compare_modes.py --z-dim 64
    python scripts/benchmarks/compare_modes.py --dataset mnist5k --orders detach wgan_gp r3 r3_lazy
    python scripts/benchmarks/compare_modes.py --dataset mnist5k --evaluate-every 400 --output quality.json
    python scripts/benchmarks/compare_modes.py --dataset mnist5k --seconds None --seeds 10
    python scripts/benchmarks/compare_modes.py --dataset my_images --networks my_gan.py:make_networks

A row has medians over the seeds, with the smallest and the largest in brackets. The runs, with their sample grids and
what `evaluate.py` has written, stay in `--runs-dir`. With nine orders and three seeds it takes 27 minutes on two cores.
"""

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` and `scripts` importable from any folder

from common.errors import BadInput, Stopped
from common.options import Count, Range, as_words, launch
from common.run import pick_device
from scripts.benchmarks.harness import ComparisonOptions, conditions, spread, write_result
from scripts.tools import evaluate
from scripts.tools.output import check_new_file, table

PLAIN = ["detach", "retain_graph", "generator_first", "simultaneous", "resample", "one_stage", "wgan_gp", "r3"]
ORDERS = {order: [f"gan_{order}"] for order in PLAIN}
ORDERS["r3_lazy"] = ["gan_r3", "--penalty-every", "5"]
COLUMNS = {  # how a figure is written
    "stacked-digits": {"modes": ",.0f", "reverse_kl": ".3f", "confident": ".1%"},
    "others": {"fid": ".2f", "precision": ".1%", "recall": ".1%", "confident": ".1%", "rarest": ".1%"},
}
STARTED = "samples/step-000000.png"  # written right before the first step
WITH_NETWORKS = f"""
import functools, runpy, sys
sys.path.insert(0, {str(ROOT)!r})
from common.models import MODELS
from scripts.tools.finished_run import make_own_networks
_, networks, model, *sys.argv = sys.argv
MODELS[model] = functools.partial(make_own_networks, networks)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Options(ComparisonOptions):
    """Options of the comparison."""

    dataset: str = "stacked-digits"
    """stacked-digits, mnist5k, mnist, fashion-mnist, cifar10, or a folder of images."""
    orders: tuple[Literal[tuple(ORDERS)], ...] = tuple(ORDERS)
    """The scripts, without gan_; r3_lazy is gan_r3.py --penalty-every 5."""
    seconds: Annotated[float, Range(0.01, 1e6)] | None = 40.0
    """Training time of each run, from its first step on. None: whole runs, of each script's own number of steps."""
    seeds: Count = 3
    """Runs of each script, with seeds 0, 1, ..."""
    runs_dir: Path = ROOT / "runs" / "compare_modes"
    """Where the runs are made."""
    evaluate_every: Count | None = None
    """Steps between two checkpoints that are evaluated, too, after the run. None: only its last."""
    output: Path | None = None
    """New .json file for all figures of all runs, which plot_results.py draws."""


def train(order: str, seed: int, options: Options) -> list[tuple[Path, float]]:
    """Train with a script for the seconds that all have; return checkpoints, each with the seconds up to it.

    The last is that of the whole run, the others those of `--evaluate-every`. Raises Stopped where the script ends by
    itself, with its last line.
    """
    runs = runs_folder(options)
    before = set(runs.glob("*/*"))
    script, *own = ORDERS[order]
    start = ["-c", WITH_NETWORKS, options.networks, options.model] if options.networks else []
    command = [sys.executable, *start, ROOT / "scripts" / f"{script}.py", *own]
    command += ["--dataset", options.dataset, "--seed", str(seed)]
    command += ["--model", options.model, "--z-dim", str(options.z_dim), "--runs-dir", runs]
    command += ["--steps", str(10**9)] if options.seconds else []
    command += ["--checkpoint-every", str(options.evaluate_every or 10**9)]
    for name in ("device", "image_size"):
        command += as_words(name, getattr(options, name))

    started: list[Path] = []
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:
                while not started and process.poll() is None:
                    time.sleep(0.05)
                    started = [run for run in set(runs.glob(f"{script}/*")) - before if (run / STARTED).exists()]
                start = time.time()
                end = start + (options.seconds or math.inf)
                while time.time() < end and process.poll() is None:
                    time.sleep(0.05)
                    if options.evaluate_every:
                        link_checkpoint(started[0] / "checkpoint.pt")
                process.terminate()  # the script ends after the step it is in, with a checkpoint
                process.wait()
                seconds = time.time() - start
            finally:
                process.kill()
        if process.returncode != (128 + signal.SIGTERM if options.seconds else 0):
            output.seek(0)
            lines = output.read().splitlines() or [""]
            raise Stopped(f"{script}.py ended by itself, with status {process.returncode}: {lines[-1]}")
    (run,) = started
    earlier = [(path, path.stat().st_mtime - start) for path in run.glob("checkpoint-*.pt")]
    return [*sorted(earlier, key=lambda pair: pair[1]), (run / "checkpoint.pt", seconds)]


def runs_folder(options: Options) -> Path:
    """Return the folder of the runs of this data set."""
    return options.runs_dir / Path(options.dataset).resolve().name


def link_checkpoint(checkpoint: Path) -> None:
    """Give the checkpoint, if there is one yet, a second name, which the next checkpoint leaves as it is."""
    if checkpoint.exists():
        second = checkpoint.with_name(f"checkpoint-{checkpoint.stat().st_mtime_ns}.pt")
        if not second.exists():
            os.link(checkpoint, second)


def report(result: dict) -> str:
    """Return the table: for each order, and for real images, medians over the seeds, smallest and largest in brackets.

    The figures of an order are those at the end of its runs.
    """
    columns = COLUMNS.get(result["options"]["dataset"], COLUMNS["others"]) | {"steps": ",.0f", "seconds": ".1f"}
    ends = {order: [run[-1] for run in runs] for order, runs in result["runs"].items()}
    everything = [figures for seeds in ends.values() for figures in seeds]
    columns = {name: form for name, form in columns.items() if any(name in figures for figures in everything)}
    rows = [[order, *[""] * (len(columns) - 1), why] for order, why in result.get("refusals", {}).items()]
    for name, seeds in (ends | {"real images": result["real images"]}).items():
        rows.append([name])
        for column, form in columns.items():
            values = [figures[column] for figures in seeds if column in figures]
            rows[-1].append(spread(values, form) if values else "")
    return table(["update order", *(name.replace("_", " ").replace("kl", "KL") for name in columns)], rows)


def main(options: Options) -> None:
    """Train, evaluate, and print the table."""
    if not options.orders:
        raise BadInput("--orders: needs a value")
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    runs, refusals, floors = {order: [] for order in options.orders}, {}, []
    turns = [(seed, order) for seed in range(options.seeds) for order in options.orders]
    for seed, order in tqdm(turns, "runs", unit="run"):
        try:
            checkpoints = train(order, seed, options)
        except Stopped as error:
            if not options.networks:
                raise
            refusals[order] = str(error)  # an order that cannot train these networks
            continue
        runs[order].append([])
        for checkpoint, seconds in checkpoints:
            own = evaluate.Options(checkpoint, networks=options.networks, device=options.device)
            entry = evaluate.evaluate_run(own)
            runs[order][-1].append(entry["samples"] | {"steps": entry["step"], "seconds": seconds})
        floors.append(entry["floor"])
    if not floors:
        raise Stopped(f"--networks {options.networks}: no order trains them; {next(iter(refusals.values()))}")
    trained = {order: seeds for order, seeds in runs.items() if seeds}
    result = write_result(options, device, {"runs": trained, "refusals": refusals, "real images": floors})
    folder = runs_folder(options)
    length = f"{options.seconds:g} seconds of training" if options.seconds else "whole runs"
    print(
        f"{conditions(result)}: noise of {options.z_dim} values, {length}, medians of {options.seeds} seeds,\n"
        f"smallest and largest in brackets; {entry['count']:,} samples.\n\n{report(result)}\n\nRuns: {folder}"
    )


if __name__ == "__main__":
    launch(main, Options)
