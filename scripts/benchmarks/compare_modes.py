"""What an update order or a penalty does to the samples of a GAN.

Every script trains with its own default options, in a process of its own, and `evaluate.py` judges its samples: FID,
precision, recall; of digits the share of confident ones and that of the rarest, too. The scripts take turns, with one
seed after the other, so that a slow phase of the machine meets them all. With `--target` a column has the seconds of
training until a checkpoint first had that FID, of those that the runs reached.

    python scripts/benchmarks/compare_modes.py --dataset fashion-mnist --seeds 5 --target 5 --jobs 2
    python scripts/benchmarks/compare_modes.py --orders detach r3 wgan_gp

A row has medians over the seeds, with the smallest and the largest in brackets. The runs, with their sample grids and
what `evaluate.py` has written, stay in `--runs-dir`. `OMP_NUM_THREADS=1` and `--jobs 2` use two cores best.
"""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` and `scripts` importable from any folder

from common.errors import BadInput, Stopped, counted
from common.launch import pick_device
from common.options import Count, NetworkOptions, Weight, typed
from scripts.benchmarks.harness import conditions, make_result, spread, write_result
from scripts.tools import evaluate
from scripts.tools.output import check_new_file, launch, table

ORDERS = ["detach", "retain_graph", "generator_first", "simultaneous", "resample", "one_stage", "wgan_gp", "r3"]
COLUMNS = {"fid": ".2f", "precision": ".1%", "recall": ".1%", "confident": ".1%", "rarest": ".1%"}  # and their format
STARTED = "samples/step-000000.png"  # written right before the first step


@dataclass(frozen=True)
class Options(NetworkOptions):
    """Options of the comparison."""

    orders: tuple[Literal[tuple(ORDERS)], ...] = tuple(ORDERS)  # The scripts, without gan_.
    steps: Count | None = None  # Steps of each run. None: the script's default.
    seeds: Count = 3  # Runs of each script, with seeds 0, 1, ...
    runs_dir: Path = ROOT / "runs" / "compare_modes"  # Where the runs are made.
    target: Weight | None = None
    """An FID: a column has the seconds of training until a checkpoint first had it, or less."""
    evaluate_every: Count = 250  # Steps between two checkpoints whose FID is measured for `--target`.
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.
    jobs: Count = 1  # Runs that train at the same time; with OMP_NUM_THREADS=1, as many as there are cores.
    output: Path | None = None  # New .json file for all figures of all runs, which plot_results.py draws.


def train(order: str, seed: int, options: Options, runs: Path) -> list[tuple[Path, float]]:
    """Train with a script in `runs`; return its checkpoints, each with the seconds from the first step on up to it.

    The last is that of the whole run, the others those of `--evaluate-every`. Raises Stopped, with its last line, where
    the script fails.
    """
    script, suffix = f"gan_{order}", f"seed-{seed}"
    before = set(runs.glob(f"{script}/*"))
    command = [sys.executable, ROOT / "scripts" / f"{script}.py", "--dataset", options.dataset, "--seed", str(seed)]
    command += ["--name", suffix, "--model", options.model, "--z-dim", str(options.z_dim), "--runs-dir", runs]
    command += ["--steps", str(options.steps)] if options.steps else []
    command += ["--checkpoint-every", str(options.evaluate_every if options.target else 10**9)]
    command += [typed(name, getattr(options, name)) for name in ("device", "image_size")]
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:
                while process.poll() is None:
                    time.sleep(0.05)
                    for run in set(runs.glob(f"{script}/*-{suffix}")) - before if options.target else ():
                        link_checkpoint(run / "checkpoint.pt")
            finally:
                process.kill()
        if process.returncode:
            output.seek(0)
            lines = output.read().splitlines() or [""]
            raise Stopped(f"{script}.py failed with status {process.returncode}: {lines[-1]}")
    (run,) = set(runs.glob(f"{script}/*-{suffix}")) - before
    last, start = run / "checkpoint.pt", (run / STARTED).stat().st_mtime
    earlier = [path for path in run.glob("checkpoint-*.pt") if not path.samefile(last)]
    pairs = [(path, path.stat().st_mtime - start) for path in (*earlier, last)]
    return sorted(pairs, key=lambda pair: pair[1])


def link_checkpoint(checkpoint: Path) -> None:
    """Give the checkpoint, if there is one yet, a second name, which the next checkpoint leaves as it is."""
    if checkpoint.exists():
        second = checkpoint.with_name(f"checkpoint-{checkpoint.stat().st_mtime_ns}.pt")
        if not second.exists():
            os.link(checkpoint, second)


def report(result: dict) -> str:
    """Return the table: for each order, and for real images, medians over the seeds, smallest and largest in brackets.

    The figures of an order are those at the end of its runs, but for the seconds to the target.
    """
    columns = COLUMNS | {"steps": ",.0f", "seconds": ".1f", "seconds_to_target": ".1f"}
    ends = {order: [run[-1] for run in runs] for order, runs in result["runs"].items()}
    everything = [figures for seeds in ends.values() for figures in seeds]
    columns = {name: form for name, form in columns.items() if any(name in figures for figures in everything)}
    rows = []
    for name, seeds in (ends | {"real images": result["real images"]}).items():
        rows.append([name])
        for column, form in columns.items():
            values = [figures[column] for figures in seeds if column in figures]
            rows[-1].append(spread(values, form) if values else "")
            rows[-1][-1] += f" in {len(values)} of {len(seeds)}" if 0 < len(values) < len(seeds) else ""
    return table(["update order", *(name.replace("_", " ") for name in columns)], rows)


def main(options: Options) -> None:
    """Train, evaluate, and print the table."""
    if not options.orders:
        raise BadInput("--orders: needs a value")
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    evaluate.load_real(options.dataset, options.image_size)  # refused before the training if there are too few
    runs, floors, entries = {order: [] for order in options.orders}, [], []
    folder = options.runs_dir / Path(options.dataset).resolve().name
    turns = [(order, seed, options, folder) for seed in range(options.seeds) for order in options.orders]
    with ThreadPoolExecutor(options.jobs) as pool:  # all train before the first is judged, which would slow the others
        trained = [pool.submit(train, *turn) for turn in turns]
        for done in tqdm(as_completed(trained), "training", len(turns), unit="run"):
            if done.exception():
                pool.shutdown(wait=False, cancel_futures=True)
                raise done.exception()
    for (order, *_), done in zip(tqdm(turns, "judging", unit="run"), trained, strict=True):
        runs[order].append([])
        for checkpoint, seconds in done.result():
            own = evaluate.Options(checkpoint, device=options.device)
            entry = evaluate.evaluate_run(own, only_fid=checkpoint.name != "checkpoint.pt")
            entries += [(own, entry)] if "samples" in entry else []
            figures = entry.get("samples", {"fid": entry.get("fid")})
            runs[order][-1].append(figures | {"steps": entry["step"], "seconds": seconds})
        if options.target:
            reached = [point["seconds"] for point in runs[order][-1] if point["fid"] <= options.target]
            runs[order][-1][-1] |= {"seconds_to_target": reached[0]} if reached else {}
        floors.append(entry["floor"])
    result = make_result(options, device, {"runs": runs, "real images": floors})
    length = counted(options.steps, "step") if options.steps else "whole runs"
    print(
        f"{conditions(result)}: noise of {options.z_dim} values, {length},\n"
        f"medians of {counted(options.seeds, 'seed')}, smallest and largest in brackets; "
        f"{entry['count']:,} samples.\n\n{report(result)}\n\nRuns: {folder}",
        flush=True,
    )
    write_result(options.output, result)
    for own, entry in entries:
        evaluate.add_to_run(own, entry)


if __name__ == "__main__":
    launch(main, Options)
