"""What a run shows: TensorBoard, a progress bar, pictures of samples, and lines of text."""

import io
import re
import sys
import threading
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.plugins.hparams.metadata import SESSION_START_INFO_TAG
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.record_writer import RecordWriter
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from common.checkpoint import averages_in, write_whole
from common.data import to_uint8
from common.errors import BadInput, as_stopped, counted, one_line, show, show_lines
from common.image_files import grid, png
from common.options import RunOptions, typed

EVENTS = "events.out.tfevents.*"  # TensorBoard's files
SIZE = re.compile(r"torch\.Size\(\[(.*?)\]\)")  # a tuple to whoever made the networks
NAMES = re.compile(r" at 0x\w+|\A\w+\(|\(\w+\): (?:\w+\($)?|^\s*\)$", re.MULTILINE)  # in the text of a network
TAGS = {  # of the results that most steps have; any other result is a curve by its own name
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
}


class Board:
    """TensorBoard and the progress bar of a run, and its pictures."""

    def __init__(self, folder: Path, facts: dict[str, Any], first: int, pictures: dict, columns: int):
        """Open them. facts: as in the run's checkpoint. first: the last step before. The others: as of `Run.steps`."""
        self.folder, self.pictures, self.columns = folder, pictures, columns
        self.last_point, self.noted = (first, time.perf_counter()), set()
        with as_stopped(folder):
            self.writer = open_writer(folder, first + 1)
        self.hook = threading.excepthook
        threading.excepthook = self.pass_over
        facts = facts["options"] | {name: fact for name, fact in facts.items() if name != "options"}
        words = {name: one_line(str(fact)) for name, fact in facts.items() if not isinstance(fact, int | float)}
        self.writer.file_writer.add_summary(hparams_pb(facts | words))  # each a column of the tab HPARAMS
        shown = {"desc": facts["script"], "unit": "step", "initial": first, "total": facts["steps"]}
        if not sys.stderr:  # it is closed
            shown["disable"] = True
        elif not (hasattr(sys.stderr, "isatty") and sys.stderr.isatty()):
            shown |= {"mininterval": 10, "bar_format": "{l_bar}{n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]\n"}
        self.bar = tqdm(**shown, dynamic_ncols=True)

    def close(self) -> None:
        """Close the bar and the files."""
        show(self.bar.close)
        try:
            with as_stopped(self.folder):
                self.writer.close()
        finally:
            threading.excepthook = self.hook

    def pass_over(self, ended: Any) -> None:
        """Print no traceback of the thread that writes to TensorBoard's file: what is written next raises its error."""
        if not type(ended.thread).__module__.startswith("tensorboard."):
            self.hook(ended)

    def add_points(self, step: int, values: dict[str, float], state: dict[str, Any]) -> None:
        """Add a point to the curve of each value, the speed and the learning rates; show the losses beside the bar."""
        (before, start), self.last_point = self.last_point, (step, time.perf_counter())
        if step == before:  # a loop that is left in the next step is saved once more
            return
        if not values and step == self.bar.total:
            show_lines("note: there are no curves of the last steps: the loop has given run.log no results")
        values["speed/steps_per_second"] = (step - before) / (self.last_point[1] - start)
        for name, owner in state.items():
            for index, group in enumerate(getattr(owner, "param_groups", [])):  # also of what is around an optimizer
                if "lr" in group:
                    values[f"optimizer/learning_rate/{name}" + (f"/group_{index}" if index else "")] = group["lr"]
        for name, value in values.items():
            self.writer.add_scalar(TAGS.get(name, name), value, step)
        losses = [f"{name} {value:.3f}" for name, value in values.items() if TAGS.get(name, name).startswith("loss/")]
        self.bar.set_postfix_str(" ".join(losses), refresh=False)

    def draw(self, step: int, state: dict[str, Any]) -> None:
        """Make the pictures with the networks in `state` in evaluation mode; show them, and write them to samples/."""
        networks = nn.ModuleList(owner for owner in state.values() if isinstance(owner, nn.Module))
        modes = {module: module.training for module in networks.modules()}
        networks.eval()
        grids = []
        for name, picture in self.pictures.items():
            if callable(picture):
                with torch.no_grad():
                    grids.append(self.grid_of(name, picture()))
                self.writer.add_image(f"images/{name}", grids[-1], step)  # TensorBoard opens what is first by name
            elif step == 0:  # it does not change
                self.writer.add_image(name, self.grid_of(name, picture), step)
        for module, mode in modes.items():  # each after what it is part of
            if module.training != mode:
                module.train(mode)  # which may do more, as LoRA that has merged its weights
        if grids:
            write_whole(self.folder / "samples" / f"step-{step:06d}.png", png(*grids))

    def grid_of(self, name: str, images: torch.Tensor) -> torch.Tensor:
        """Return a picture as a grid; raises BadInput where it is another than `Run.steps` takes."""
        kind, shape = getattr(images, "dtype", type(images).__name__), [*getattr(images, "shape", [])]
        is_right = isinstance(images, torch.Tensor) and kind.is_floating_point and len(shape) == 4
        if not is_right or shape[1] not in (1, 3):
            raise BadInput(f"pictures[{name!r}] must be floats (N, 1 or 3, H, W) in [-1, 1], not {kind} {shape}")
        largest = images.abs().amax().item()
        if not largest <= 2 and name not in self.noted:  # NaN is the largest where there is one
            self.noted.add(name)
            show_lines(f"note: pictures[{name!r}] holds values up to {largest:.3g}; what is outside [-1, 1] is clipped")
        return grid(to_uint8(images), self.columns)


def open_writer(folder: Path, first_step: int) -> SummaryWriter:
    """Return a writer of events from a step on: TensorBoard drops what earlier files have of that step and later ones.

    The tab HPARAMS shows the options of this writer only. Raises OSError.
    """
    files = sorted(folder.glob(EVENTS))
    for path in files:
        write_whole(path, without_options(path))  # of several, the tab would show the first ones
    writer = SummaryWriter(folder, purge_step=first_step)
    if files and max(folder.glob(EVENTS)) in files:  # TensorBoard reads in the order of names, which begin with a time
        for number, path in enumerate(files):  # else they keep their names: one that is open may read them
            path.rename(path.with_name(f"events.out.tfevents.{number:010}.{path.name.split('.', 4)[4]}"))
    return writer


def without_options(path: Path) -> bytes:
    """Return the content of a file of events without what the tab HPARAMS shows of a run."""
    file = io.BytesIO()
    writer = RecordWriter(file)
    for record in RawEventFileLoader(str(path)).Load():  # up to the end, or to a part of a record
        if SESSION_START_INFO_TAG.encode() not in record:
            writer.write(record)
    return file.getvalue()


def show_chosen(facts: dict[str, Any], given: RunOptions) -> None:
    """Print which options main has chosen by the images. facts: as in the run's checkpoint. given: those before."""
    before = given.to_store()
    chosen = [typed(name, value) for name, value in facts["options"].items() if value != before[name]]
    for count, *shape in facts["data_shapes"][:1] if chosen else ():
        classes = [f"in {len(names)} {'classes' if names[1:] else 'class'} " for names in facts["classes"]]
        kind = f"{'x'.join(map(str, shape))} {''.join(classes)}with {' '.join(chosen)}"
        show_lines(f"Trains on {counted(count, 'image')} of {kind}")


def layers_in(state: dict[str, Any]) -> dict[str, str]:
    """Return the text of each network in a state, by name, as a checkpoint keeps it."""
    return {name: str(owner) for name, owner in state.items() if isinstance(owner, nn.Module)}


def note_layers(before: Any, now: dict[str, str]) -> None:
    """Print a line for each network whose text was another. before: as `layers_in`, a generator's text, or None."""
    before = before if isinstance(before, dict) else {"generator": before}
    for name in (name for name in now if isinstance(before.get(name), str)):
        texts = [SIZE.sub(r"(\1)", NAMES.sub("", each[name])) for each in (before, now)]
        lines = [[line.strip() for line in text.split("\n")] for text in texts]
        pairs = zip_longest(*(filter(None, each) for each in lines), fillvalue="nothing")
        if other := next((pair for pair in pairs if pair[0] != pair[1]), None):
            show_lines(f"note: {name} had {other[0]}, not {other[1]}: is a layer changed, or is it another script's?")


def note_networks(before: Any, state: dict[str, Any]) -> None:
    """Print what `note_layers` does of a state, and a line for each average without a network, or not the only one."""
    note_layers(before, layers_in(state))
    for name, owner in state.items():
        for network in averages_in({name: owner}):  # none, if it is no average
            last, advice = averages_in(state)[network], "an average of another network x is called average_x"
            if network not in state:
                show_lines(f"note: {name} counts as the average of {network}, which `state` lacks: {advice}")
            elif last != name:
                show_lines(f"note: {name} and {last} are averages of {network}: the tools take {last}; {advice}")
