"""Make `runs/reference/` again: a default run of every training script, thinned to a size for the repository.

    python scripts/benchmarks/publish_runs.py
    tensorboard --logdir runs/reference

Published are a run's `config.json` and its TensorBoard events: all curves and texts, and every second picture of a
trained network, with the last. A GAN also gets `samples.png`: the same noise at five steps of its run. All runs
together take some seven minutes on two cores.
"""

import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import numpy as np
from annotated_types import MinLen
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.errors import BadInput, Stopped
from common.run.command_line import launch
from common.run.folder import shown
from common.run.option_values import Count, check_numbers

GANS = ["gan_detach", "gan_retain_graph", "gan_generator_first", "gan_simultaneous", "gan_resample", "gan_one_stage"]
GANS += ["gan_wgan_gp", "gan_r3"]
SCRIPTS = [*GANS, "cyclegan"]
PUBLISHED = {"config.json", "events.out.tfevents.0", "samples.png"}
FRAME = 4 * 58 + 2  # pixels of four digits side by side in a grid


@dataclass(frozen=True)
class Options:
    """Options of the publication."""

    scripts: Annotated[tuple[str, ...], MinLen(1)] = tuple(SCRIPTS)
    """Training scripts to run, by name."""
    output: Path = ROOT / "runs" / "reference"
    """Where each script's folder is made. A folder published before is replaced, any other is refused."""
    steps: Count | None = None
    """Steps of each run. None: the scripts' defaults."""


def thin(run: Path, published: Path) -> None:
    """Copy a run's config and thinned events into the new folder `published`."""
    published.mkdir()
    config = json.loads((run / "config.json").read_text())
    config["options"]["runs_dir"] = "runs"  # was a temporary folder
    (published / "config.json").write_text(json.dumps(config, indent=2))
    (events,) = run.glob("events.out.tfevents.*")
    records = [(record, Event.FromString(record)) for record in RawEventFileLoader(str(events)).Load()]
    pictures = [event for _, event in records if is_picture(event)]
    steps = sorted({event.step for event in pictures})
    kept = {*steps[::2], steps[-1]}
    trained = {tag for event in pictures if event.step for tag in tags(event)}
    with (published / "events.out.tfevents.0").open("wb") as file:
        writer = RecordWriter(file)
        for record, event in records:
            untrained = event.step == 0 and tags(event) & trained  # noise, which no PNG makes smaller
            if not is_picture(event) or (event.step in kept and not untrained):
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


def check_published(folder: Path) -> None:
    """Raise BadInput if anything at `folder` was not published by this script, so that it is not replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"--output: {folder} is no folder that was published; name another --output or move it away")
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        if path.name not in PUBLISHED or path.is_symlink() or not path.is_file():
            raise BadInput(f"--output: {path} was not published; name another --output or move {folder} away")


def check(options: Options) -> None:
    """Raise BadInput for options that cannot work, before anything is run."""
    check_numbers(options)
    if unknown := set(options.scripts) - set(SCRIPTS):
        raise BadInput(f"--scripts {sorted(unknown)[0]}: not one of {', '.join(SCRIPTS)}")
    try:
        for script in options.scripts:
            check_published(options.output / script)
        options.output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.output):
            pass
    except OSError as error:
        raise BadInput(f"--output {options.output}: cannot be written ({error.strerror}); name another") from error


def publish(script: str, run: Path, output: Path, digits: bool) -> None:
    """Publish a run in `output`/`script`; a folder there is replaced when the new one is complete.

    digits: whether to add `samples.png`, the film strip of a run on digits.
    """
    published = output / script
    with tempfile.TemporaryDirectory(dir=output, prefix=f".{script}.") as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        thin(run, new)
        if digits:
            filmstrip(run).save(new / "samples.png")
        check_published(published)  # again: somebody may have added files during the run
        try:
            if published.exists():
                published.replace(old)
            new.replace(published)
        finally:
            if old.exists() and not published.exists():
                old.replace(published)


def main(options: Options) -> None:
    """Run the scripts one by one and publish each as it ends."""
    check(options)
    steps = [] if options.steps is None else ["--steps", str(options.steps)]
    for script in tqdm(dict.fromkeys(options.scripts), "runs", unit="run"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, ROOT / "scripts" / f"{script}.py", "--runs-dir", "runs", *steps]
            if subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL).returncode:
                raise Stopped(f"{script}.py failed with the message above; the runs published before are kept")
            (run,) = Path(folder, "runs", script).iterdir()
            publish(script, run, options.output, script in GANS)
    print(f"TensorBoard: tensorboard --logdir {shown(options.output)}")


if __name__ == "__main__":
    launch(main, Options)
