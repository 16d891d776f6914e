"""The GAN speedrun: seconds of training to an FID, of a recipe of one's own: docs/records.md.

A contender is a file with a function `train`, as in `contender.py`, the default recipe. Contenders take turns, with one
seed after the other, each time in a new process with one thread. Seconds are CPU time. The clock stands still while
samples are drawn, and judged as by `evaluate.py`.

    python scripts/benchmarks/speedrun.py my_gan.py
"""

import math
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import torch
import tyro

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import load_images, to_uint8
from common.errors import BadInput, Stopped
from common.options import Count, Options, Range, Weight
from scripts.benchmarks.harness import ROOT, environment, spread
from scripts.tools import evaluate, real_images
from scripts.tools.measures import measure_fid
from scripts.tools.output import launch, table


@dataclass(frozen=True)
class SpeedrunOptions(Options):
    """Options of the speedrun."""

    contenders: tyro.conf.Positional[tuple[Path, ...]] = ()  # Files with a function train, executed: my_gan.py.
    baseline: Path = ROOT / "scripts" / "benchmarks" / "contender.py"  # The contender whose ratio is 1.
    dataset: Literal["fashion-mnist", "mnist", "mnist5k"] = "fashion-mnist"  # That of the records is fashion-mnist.
    target: Weight = 5.0  # The FID to reach.
    minutes: Annotated[float, Range(0, 1e5)] = 10.0  # Of training, after which a run ends at its next look.
    seeds: Count = 5  # Runs of each contender, with seeds 0, 1, ...


def train_here(contender: Path, seed: int, dataset: str, count: int, pipe: Connection) -> None:
    """Train in this process; at each look send the seconds and `count` samples, uint8, and wait for an answer."""
    images = load_images(dataset)
    for name in [*sys.modules]:  # a contender in scripts/benchmarks/ of another checkout imports what lies there
        if name.split(".")[0] in ("common", "scripts"):
            del sys.modules[name]
    sys.path[:0] = map(str, (contender.parent, *contender.parents[2:3]))
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    train = runpy.run_path(str(contender))["train"]
    start = time.process_time()
    for draw in train(images, seed):
        seconds = time.process_time() - start
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(10**6 + seed)
            samples = torch.empty(count, *images.shape[1:], dtype=torch.uint8)
            for part in samples.split(500):  # for little memory
                drawn = draw(len(part))
                if drawn.shape != part.shape or not drawn.abs().amax() <= 1:
                    sys.exit(f"{contender}: draws {drawn.dtype} {[*drawn.shape]}, not float {[*part.shape]} in [-1, 1]")
                part.copy_(to_uint8(drawn))
            pipe.send((seconds, samples.numpy()))
        pipe.recv()
        start = time.process_time() - seconds


def train(contender: Path, seed: int, options: SpeedrunOptions, count: int, judge: Callable) -> tuple[float, float]:
    """Train in a new process to the target; return the seconds, or inf, and the lowest FID of so many samples."""
    context, lowest = get_context("spawn"), math.inf
    pipe, its_end = context.Pipe()
    process = context.Process(target=train_here, args=(contender.resolve(), seed, options.dataset, count, its_end))
    process.start()
    its_end.close()
    try:
        while lowest > options.target:
            seconds, samples = pipe.recv()
            if seconds > 60 * options.minutes:
                return math.inf, lowest
            lowest = min(lowest, judge(torch.from_numpy(samples)))
            pipe.send("go on")
        return seconds, lowest
    except EOFError:  # the process has ended
        process.join()
        if process.exitcode:
            raise Stopped(f"{contender}: failed with status {process.exitcode}, and the message above") from None
        return math.inf, lowest
    finally:
        process.kill()
        process.join()


def main(options: SpeedrunOptions) -> None:
    """Train and judge all in turns, and print the table: medians over the seeds, smallest and largest in brackets."""
    runs = {contender: [] for contender in (options.baseline, *options.contenders)}
    if len({contender.resolve() for contender in runs}) <= len(options.contenders):
        raise BadInput("a contender is named twice, or is the --baseline; to see the noise, name a copy of its file")
    for contender in runs:
        if not contender.is_file():
            raise BadInput(f"{contender}: is no file; name one with a function train, as contender.py has it")
    data = real_images.load_real(options.dataset, None)
    is_of_digits = options.dataset in evaluate.DIGIT_DATASETS
    judge = evaluate.digit_classifier() if is_of_digits else evaluate.class_classifier(options.dataset, data)
    count = min(evaluate.COUNT, len(data.images) // 2)
    order = torch.randperm(len(data.images), generator=torch.Generator().manual_seed(0))
    real, others = (judge.features(data.images[rows]) for rows in order[: 2 * count].split(count))
    machine = ", ".join(environment(torch.device("cpu")).values())
    print(f"{machine}; {options.dataset}, FID of real images {measure_fid(others, real):.2f}")
    for seed in range(options.seeds):
        for contender, results in runs.items():
            results.append(train(contender, seed, options, count, lambda x: measure_fid(judge.features(x), real)))
            seconds, lowest = results[-1]
            arrived = f"{seconds:.1f} seconds" if math.isfinite(seconds) else "not reached"
            print(f"{contender}, seed {seed}: {arrived}, lowest FID {lowest:.2f}", flush=True)
    rows, reference = [], median(seconds for seconds, _ in runs[options.baseline])
    for contender, results in runs.items():
        seconds, lowest = zip(*results, strict=True)
        row = ["not reached", "-"]
        if math.isfinite(median(seconds)):
            ratio = f"{median(seconds) / reference:.2f}" if math.isfinite(reference) else "-"
            row = [spread(seconds, ".1f"), ratio]
        best = f"{median(lowest):.2f}".replace("inf", "-")  # inf: never judged
        rows.append([str(contender), *row, f"{sum(map(math.isfinite, seconds))} of {len(seconds)}", best])
    print(f"\n{table(['contender', f'seconds to FID {options.target:g}', 'ratio', 'arrived', 'lowest FID'], rows)}")


if __name__ == "__main__":
    launch(main, SpeedrunOptions)
