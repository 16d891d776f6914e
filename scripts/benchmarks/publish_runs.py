"""Make `runs/reference/` again: a default run of every training script, thinned to a size for the repository.

    python scripts/benchmarks/publish_runs.py
    tensorboard --logdir runs/reference
    tensorboard --logdir runs/reference_cyclegan

Published are a run's `config.json` and its TensorBoard events: all curves and texts, and every second picture of a
trained network, with the last. A GAN also gets `samples.png`: the same noise at five steps of its run, or the last
grid of a run with labels. All runs together take some seven minutes on two cores.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import numpy as np
from annotated_types import MinLen
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import summary
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.errors import Stopped
from common.run.command_line import launch
from common.run.folder import write_whole
from common.run.option_values import Count, checked

GANS = ["gan_detach", "gan_retain_graph", "gan_generator_first", "gan_simultaneous", "gan_resample", "gan_one_stage"]
GANS += ["gan_wgan_gp", "gan_r3"]
SCRIPTS = [*GANS, "gan_conditional", "cyclegan"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}  # for copies of scripts, which lie elsewhere
FRAME = 4 * 58 + 2  # pixels of four digits side by side in a grid


@dataclass(frozen=True)
class Options:
    """Options of the publication."""

    scripts: Annotated[tuple[Literal[tuple(SCRIPTS)], ...], MinLen(1)] = tuple(SCRIPTS)
    """Training scripts to run, by name."""
    output: Path = ROOT / "runs" / "reference"
    """Where each GAN has its folder. Files published there before are replaced, others stay.

    CycleGAN's curves are others: its folder is in another log folder, of this name and `_cyclegan`.
    """
    steps: Count | None = None
    """Steps of each run. None: the scripts' defaults."""


def write_thinned(events: Path, file: BinaryIO, texts: dict[str, str], without: str) -> None:
    """Copy a run's TensorBoard events to `file`; of a trained network's pictures every second one, and the last.

    texts: Markdown to add, by tag. without: a tag whose events are left out.
    """
    records = [(record, Event.FromString(record)) for record in RawEventFileLoader(str(events)).Load()]
    pictures = [event for _, event in records if is_picture(event)]
    steps = sorted({event.step for event in pictures})
    published_steps = {*steps[::2], steps[-1]}
    trained = {tag for event in pictures if event.step for tag in tags(event)}
    writer = RecordWriter(file)
    for tag, text in texts.items():
        added = Event(wall_time=records[0][1].wall_time, summary=summary.text(tag, text))
        records.insert(1, (added.SerializeToString(), added))  # the first record is the file's version
    for record, event in records:
        untrained = event.step == 0 and tags(event) & trained  # noise, which no PNG makes smaller
        hidden = is_picture(event) and (untrained or event.step not in published_steps)
        if not hidden and without not in tags(event):
            writer.write(record)


def filmstrip(run: Path) -> Image.Image:
    """Return the upper left of a run's sample grids side by side: its first three, its fifth and its last."""
    paths = sorted((run / "samples").iterdir())
    chosen = dict.fromkeys([*paths[:3], *paths[4:5], paths[-1]])
    frames = [np.array(Image.open(path))[:FRAME, :FRAME] for path in chosen]
    gap = np.full((len(frames[0]), 12), 255, dtype=np.uint8)
    return Image.fromarray(np.hstack([part for frame in frames for part in (gap, frame)][1:]))


def is_picture(event: Event) -> bool:
    """Return whether the event is an image."""
    return any(value.HasField("image") for value in event.summary.value)


def tags(event: Event) -> set[str]:
    """Return the names of the event's values."""
    return {value.tag for value in event.summary.value}


def last_grid(run: Path) -> Image.Image:
    """Return a run's last sample grid."""
    return Image.open(max((run / "samples").iterdir()))


PICTURES = dict.fromkeys(GANS, filmstrip) | {"gan_conditional": last_grid}


def publish(
    run: Path,
    folder: Path,
    picture: Callable[[Path], Image.Image] | None,
    texts: dict[str, str] | None = None,
    without: str = "",
) -> None:
    """Publish a run in `folder`; the files that were published there before are replaced, others stay.

    picture: makes `samples.png` of the run; None: without it. texts: Markdown that TensorBoard shows, by tag. without:
    a tag that is not published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((run / "config.json").read_text())
    config["options"]["runs_dir"] = "runs"  # was a temporary folder
    (events,) = run.glob("events.out.tfevents.*")
    write_whole(folder / "events.out.tfevents.0", lambda file: write_thinned(events, file, texts or {}, without))
    write_whole(folder / "config.json", lambda file: file.write(json.dumps(config, indent=2).encode()))
    if picture:
        write_whole(folder / "samples.png", lambda file: picture(run).save(file, "png"))


def run_script(script: Path, arguments: list[object], folder: Path) -> Path:
    """Run a training script in `folder`, and return its run there; raises Stopped if it fails."""
    command = [sys.executable, script, "--runs-dir", "runs", *arguments]
    if subprocess.run([*map(str, command)], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL).returncode:
        raise Stopped(f"{script.name} failed with the message above; the runs published before stay")
    (run,) = Path(folder, "runs", script.stem).iterdir()
    return run


def main(options: Options) -> None:
    """Run the scripts one by one and publish each as it ends."""
    options = checked(options)
    steps = [] if options.steps is None else ["--steps", options.steps]
    for script in tqdm(dict.fromkeys(options.scripts), "runs", unit="run"):
        with tempfile.TemporaryDirectory() as folder:
            run = run_script(ROOT / "scripts" / f"{script}.py", steps, folder)
            name = options.output.name + ("_cyclegan" if script == "cyclegan" else "")
            publish(run, options.output.with_name(name) / script, PICTURES.get(script))
    print(f"TensorBoard: tensorboard --logdir {options.output}")


if __name__ == "__main__":
    launch(main, Options)
