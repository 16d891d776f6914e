"""The GAN speedrun: seconds of training to an FID, of a recipe of one's own or a stranger's script: docs/records.md.

A contender is a file with a function `train`, as in `contender.py`, the default recipe; or, with a colon, a script that
trains by itself, the global name of its generator, and its arguments. It gets the images also where it asks torchvision
for MNIST. Contenders take turns, with one seed after the other, each time in a new process with one thread. Seconds are
CPU time. The clock stands still while samples are drawn, and judged as by `evaluate.py`.

    python scripts/benchmarks/speedrun.py my_gan.py
    python scripts/benchmarks/speedrun.py dcgan.py:generator "main.py:netG --dataset mnist --dataroot . --workers 0"
"""

import copy
import math
import os
import random
import runpy
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torchvision import datasets

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` and `scripts` importable from any folder

from common.data import DOWNLOADS, load_images, to_uint8
from common.errors import BadInput, Stopped
from common.options import Count, Options, Range, Weight
from scripts.benchmarks.harness import environment, spread
from scripts.tools import evaluate
from scripts.tools.output import launch, table

Look = Callable[[Callable[[int], Tensor]], None]  # takes a function that draws n samples, floats in [-1, 1]


@dataclass(frozen=True)
class SpeedrunOptions(Options):
    """Options of the speedrun."""

    contenders: tyro.conf.Positional[tuple[str, ...]] = ()
    """Files, executed: my_gan.py, with a function train, or "main.py:netG --dataset mnist --dataroot . --workers 0", a
    script whose global netG is its generator, with its arguments."""
    baseline: str = str(ROOT / "scripts" / "benchmarks" / "contender.py")  # The contender whose ratio is 1.
    dataset: Literal["fashion-mnist", "mnist", "mnist5k"] = "fashion-mnist"  # That of the records is fashion-mnist.
    target: Weight = 5.0  # The FID to reach.
    minutes: Annotated[float, Range(0, 1e5)] = 10.0  # Of training, after which a run ends at its next look.
    seeds: Count = 5  # Runs of each contender, with seeds 0, 1, ...
    look_every: Count = 100  # Steps of a script's generator between two looks.


def train_here(contender: str, seed: int, options: SpeedrunOptions, count: int, folder: str, pipe: Connection) -> None:
    """Train in this process, in `folder`; at a look send the seconds and `count` samples, and wait for an answer."""
    file, _, script = contender.partition(":")
    path, images, start = Path(file).resolve(), load_images(options.dataset), 0.0
    for name in [*sys.modules]:  # a contender in scripts/benchmarks/ of another checkout imports what lies there
        if name.split(".")[0] in ("common", "scripts"):
            del sys.modules[name]
    sys.path[:0] = map(str, (path.parent, *path.parents[2:3]))
    os.chdir(folder)
    torch.set_num_threads(1)
    for set_seed in (torch.manual_seed, random.seed, np.random.seed):
        set_seed(seed)

    def look(draw: Callable[[int], Tensor]) -> None:
        nonlocal start
        seconds = time.process_time() - start
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(10**6 + seed)
            chunks = [to_uint8(draw(len(chunk))) for chunk in torch.arange(count).split(500)]  # for little memory
            pipe.send((seconds, torch.cat(chunks).numpy()))
        pipe.recv()
        start = time.process_time() - seconds

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        if script:
            start = time.process_time()
            run_script(path, script, images, options.look_every, look)
        else:
            train = runpy.run_path(str(path))["train"]
            start = time.process_time()
            for draw in train(images, seed):
                look(draw)


def run_script(path: Path, script: str, images: Tensor, look_every: int, look: Look) -> None:
    """Run a script, with the images where it takes torchvision's MNIST or Fashion-MNIST, and look at its generator.

    script: the generator's global name, and arguments. Samples are drawn by a copy of the generator in its own mode,
    from standard normal noise in batches of the shape that it was last given.
    """
    name, *arguments = shlex.split(script)
    given, steps = [], 0

    def take_images(self, root, train=True, transform=None, target_transform=None, download=False):
        datasets.VisionDataset.__init__(self, root, None, transform, target_transform)
        self.data, self.targets = images[:, 0], torch.zeros(len(images), dtype=torch.int64)

    def keep_noise(generator: nn.Module, inputs: tuple[Tensor]) -> None:
        given[:] = inputs

    def count_step(optimizer: Optimizer, *_: object) -> None:
        nonlocal steps
        generator = vars(sys.modules["__main__"])[name]
        weight = next(generator.parameters())
        if any(weight is trained for group in optimizer.param_groups for trained in group["params"]):
            steps += 1
            if steps == 1:
                generator.register_forward_pre_hook(keep_noise)
            elif steps % look_every == 0:
                twin, z = copy.deepcopy(generator), given[0]
                look(lambda count: torch.cat([twin(torch.randn_like(z)) for _ in range(0, count, len(z))])[:count])

    datasets.MNIST.__init__ = take_images  # of Fashion-MNIST, too, whose class derives from it
    register_optimizer_step_post_hook(count_step)
    sys.argv = [str(path), *arguments]
    runpy.run_path(str(path), run_name="__main__")


def train(contender: str, seed: int, options: SpeedrunOptions, count: int, judge: Callable) -> tuple[float, float]:
    """Train in a new process until the FID of so many samples is the target; return the seconds and the lowest FID.

    The seconds are inf where the target is not reached.
    """
    context, lowest = get_context("spawn"), math.inf
    pipe, its_end = context.Pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        inner = f"{folder}/two/deep"  # scripts write two folders up
        Path(inner).mkdir(parents=True)
        process = context.Process(target=train_here, args=(contender, seed, options, count, inner, its_end))
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
    for contender in runs:
        if not Path(contender.partition(":")[0]).is_file():
            raise BadInput(f"{contender}: is no file; name one, as in my_gan.py, train.py:generator")
    data = evaluate.load_real(options.dataset, None)
    is_of_digits = options.dataset in evaluate.DIGIT_DATASETS
    judge = evaluate.digit_classifier() if is_of_digits else evaluate.class_classifier(options.dataset, data, DOWNLOADS)
    count = min(evaluate.COUNT, len(data.images) // 2)
    order = torch.randperm(len(data.images), generator=torch.Generator().manual_seed(0))
    real, others = (judge.features(data.images[rows]) for rows in order[: 2 * count].split(count))
    machine = ", ".join(environment(torch.device("cpu")).values())
    print(f"{machine}; {options.dataset}, FID of real images {evaluate.measure_fid(others, real):.2f}")
    for seed in range(options.seeds):
        for contender, results in runs.items():
            results.append(
                train(contender, seed, options, count, lambda x: evaluate.measure_fid(judge.features(x), real))
            )
            print("{}, seed {}: {:.1f} seconds, lowest FID {:.2f}".format(contender, seed, *results[-1]), flush=True)
    rows, reference = [], median(seconds for seconds, _ in runs[options.baseline])
    for contender, results in runs.items():
        seconds, lowest = zip(*results, strict=True)
        row = [f"not reached in {options.minutes:g} minutes", "-"]
        if math.isfinite(median(seconds)):
            ratio = f"{median(seconds) / reference:.2f}" if math.isfinite(reference) else "-"
            row = [spread(seconds, ".1f"), ratio]
        best = f"{median(lowest):.2f}".replace("inf", "-")  # inf: never judged
        rows.append([contender, *row, f"{sum(map(math.isfinite, seconds))} of {len(seconds)}", best])
    print(f"\n{table(['contender', f'seconds to FID {options.target:g}', 'ratio', 'arrived', 'lowest FID'], rows)}")


if __name__ == "__main__":
    launch(main, SpeedrunOptions)
