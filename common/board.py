"""What a run shows: TensorBoard, a progress bar, pictures of samples, and the last lines."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from common.checkpoint import write_whole
from common.data import to_uint8
from common.errors import as_stopped, one_line
from common.image_files import grid, png
from common.options import RunOptions, typed

TAGS = {  # of the results that most steps have; any other result is a curve by its own name
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
}


class Board(AbstractContextManager):
    """TensorBoard and the progress bar of a run, and its pictures."""

    def __init__(self, folder: Path, facts: dict[str, Any], first: int, pictures: dict, columns: int):
        """Open them. facts: as in the run's checkpoint. first: the last step before. The others: as of `Run.steps`."""
        self.folder, self.pictures, self.columns = folder, pictures, columns
        self.last_point = first, time.perf_counter()
        with as_stopped(folder):
            for number, path in enumerate(sorted(folder.glob("events.out.tfevents.*"))):  # which are read by name
                path.rename(path.with_name(f"events.out.tfevents.{number:010}.{path.name.split('.', 4)[4]}"))
            self.writer = SummaryWriter(folder, purge_step=first + 1)
        facts = facts["options"] | {name: fact for name, fact in facts.items() if name != "options"}
        words = {name: one_line(str(fact)) for name, fact in facts.items() if not isinstance(fact, int | float)}
        self.writer.file_writer.add_summary(hparams_pb(facts | words))  # each a column of the tab HPARAMS
        shown = {"desc": facts["script"], "unit": "step", "initial": first, "total": facts["steps"]}
        if sys.stderr and not sys.stderr.isatty():  # it is None where it is closed
            shown |= {"mininterval": 10, "bar_format": "{l_bar}{n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]\n"}
        self.bar = tqdm(**shown, dynamic_ncols=True, disable=not sys.stderr)

    def __exit__(self, *_: object) -> None:
        """Close the bar and the files."""
        show(self.bar.close)
        with as_stopped(self.folder):
            self.writer.close()

    def draw_first(self, state: dict[str, Any]) -> None:
        """Draw the pictures before the first step, also those that do not change, and add a hint for the reader."""
        self.writer.add_text("what to look at", f"docs/curves.md says it for {self.bar.desc}.py.")
        for name, picture in self.pictures.items():
            if isinstance(picture, Tensor):
                self.writer.add_image(name, grid(to_uint8(picture), self.columns), 0)
        self.draw(0, state)

    def add_points(self, step: int, values: dict[str, float], state: dict[str, Any]) -> None:
        """Add a point to the curve of each value, the speed and the learning rates; show the losses beside the bar."""
        (before, start), self.last_point = self.last_point, (step, time.perf_counter())
        values["speed/steps_per_second"] = (step - before) / (self.last_point[1] - start)
        for name, owner in state.items():
            if isinstance(owner, Optimizer):
                values[f"optimizer/learning_rate/{name}"] = owner.param_groups[0]["lr"]
        losses = []
        for name, value in values.items():
            tag = TAGS.get(name, name)
            self.writer.add_scalar(tag, value, step)
            if tag.startswith("loss/"):
                losses.append(f"{name} {value:.3f}")
        self.bar.set_postfix_str(" ".join(losses), refresh=False)

    def draw(self, step: int, state: dict[str, Any]) -> None:
        """Make the pictures with the networks in `state` in evaluation mode; show them, and write them to samples/."""
        networks = nn.ModuleList(owner for owner in state.values() if isinstance(owner, nn.Module))
        training = [module for module in networks.modules() if module.training]
        networks.eval()
        with torch.no_grad():
            made = {name: grid(to_uint8(f()), self.columns) for name, f in self.pictures.items() if callable(f)}
        for module in training:
            module.training = True
        for name, picture in made.items():
            self.writer.add_image(f"images/{name}", picture, step)  # TensorBoard opens what is first by name
        if made:
            path = self.folder / "samples" / f"step-{step:06d}.png"
            with as_stopped(path):
                path.parent.mkdir(exist_ok=True)
            write_whole(path, png(*made.values()))


def show(change: Callable, *arguments: object) -> None:
    """Print, or change the progress bar; a terminal that is closed is written to no more."""
    try:
        change(*arguments)
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_lines(*lines: str) -> None:
    """Print lines, at once."""
    show(partial(print, *lines, sep="\n", flush=True))


def show_choice(facts: dict[str, Any], given: RunOptions) -> None:
    """Print the options of a run, in its `facts`, that main has chosen by the images in place of those given."""
    given = given.to_store()
    chosen = [typed(name, value) for name, value in facts["options"].items() if value != given[name]]
    if chosen:
        count, *shape = facts["data_shapes"][0]
        show_lines(f"Trains on {count} images of {'x'.join(map(str, shape))} with {' '.join(chosen)}")


def show_end(script: Path, folder: Path, step: int, steps: int, processes: int) -> None:
    """Print where the results of a run are after a step, and how to continue it with so many `processes`."""
    lines = [f"Done: {step} steps. What the curves show: docs/curves.md"]
    if step < steps:
        python = "python" if processes == 1 else f"torchrun --standalone --nproc-per-node={processes}"
        command = shlex.join([str(script), "--resume", str(folder)])
        lines = [f"Interrupted after step {step}.", f"Continue:    {python} {command}"]
    picture = folder / "samples" / f"step-{step:06d}.png"
    if picture.exists():
        lines.append(f"Samples:     {picture}")
    show_lines(*lines, f"TensorBoard: tensorboard --logdir {shlex.quote(str(folder.parent))}")
