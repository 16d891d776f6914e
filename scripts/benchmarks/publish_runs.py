"""Make `runs/reference/` again: a default run of every training script, thinned to a size for the repository.

    python scripts/benchmarks/publish_runs.py
    tensorboard --logdir runs/reference
    tensorboard --logdir runs/reference_cyclegan

Published are a run's TensorBoard events, without the samples of step 0, with the texts of `docs/curves.md` and a hash
of the source. A GAN also gets `samples.png`: the same noise after 0, 250, 500 and 1,000 steps and at the end, or the
last grid of a run with labels.
All runs together take a quarter of an hour on two cores.
"""

import ast
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.errors import BadInput, Stopped, as_bad_input
from common.options import Count, Options
from scripts.tools.output import launch

LOOK_AT = dict(re.findall(r"^\| `(\w+)\.py` \| (.*) \|$", (ROOT / "docs" / "curves.md").read_text(), re.MULTILINE))
NO_WEIGHTS = {"data", "domains", "run"}  # files of common/ that give a run its images and its log
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}  # for copies of scripts, which lie elsewhere
FRAME = 4 * 58 + 2  # pixels of four digits side by side in a grid


@dataclass(frozen=True)
class PublishOptions(Options):
    """Options of the publication."""

    scripts: tuple[Literal[tuple(LOOK_AT)], ...] = tuple(LOOK_AT)  # Training scripts to run, by name.
    output: Path = ROOT / "runs" / "reference"
    """Where each GAN has its folder; CycleGAN, whose curves are others, has it in one of this name and `_cyclegan`.
    Files published there before are replaced, others stay."""
    steps: Count | None = None  # Steps of each run. None: the scripts' defaults.


def run_script(script: Path, arguments: list[object], folder: Path) -> Path:
    """Run a training script in `folder`, and return its run there; raises Stopped if it fails."""
    command = [sys.executable, script, "--runs-dir", "runs", *arguments]
    if subprocess.run([*map(str, command)], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL).returncode:
        raise Stopped(f"{script.name} failed with the message above; the runs published before stay")
    (run,) = Path(folder, "runs", script.stem).iterdir()
    return run


def make_folder(folder: Path) -> None:
    """Make a folder to publish in, before the training; raises BadInput if it cannot be made."""
    with as_bad_input("--output"):
        folder.mkdir(parents=True, exist_ok=True)


def source_hash(source: str) -> str:
    """Return a hash of what decides a run's weights: the syntax, without docstrings, of script and imports."""
    used = {"models", "options", *re.findall(r"^from common\.(\w+) import", source, re.MULTILINE)} - NO_WEIGHTS
    total = hashlib.sha256()
    for text in (source, *((ROOT / "common" / f"{name}.py").read_text() for name in sorted(used))):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(parts := getattr(node, "body", None), list):  # a text that is a statement has no effect
                node.body = [p for p in parts if not (isinstance(p, ast.Expr) and isinstance(p.value, ast.Constant))]
        total.update(re.sub(r"\w+=\[\]|[ ,]", "", ast.dump(tree)).encode())  # new versions of Python leave out "[]"
    return total.hexdigest()


def publish(run: Path, folder: Path, script: Path, title: str, text: str) -> None:
    """Publish a run of `script` in `folder`, with a text; its files published before are replaced, others stay.

    The samples of step 0 are left out: noise, which no PNG makes smaller.
    """
    with SummaryWriter(run) as board:
        board.add_text(title, text)
        board.add_text("hash of the source", source_hash(script.read_text()))
    with (folder / "events.out.tfevents.0").open("wb") as file:
        writer = RecordWriter(file)
        for path in sorted(run.glob("events.out.tfevents.*")):
            for record in RawEventFileLoader(str(path)).Load():
                event = Event.FromString(record)
                if event.step or not any(value.tag.startswith("images/") for value in event.summary.value):
                    writer.write(record)


def sample_grids(run: Path) -> dict[str, Image.Image]:
    """Return a run's sample grids by their file's name, in the order of their steps."""
    return {path.stem: Image.open(path) for path in sorted((run / "samples").iterdir())}


def contact_sheet(tiles: dict[str, Image.Image], columns: int) -> Image.Image:
    """Return four by four digits from the upper left of each grey grid side by side, each under its name."""
    rows = -(-len(tiles) // columns)
    sheet = Image.new("L", (columns * (FRAME + 12) - 12, rows * (FRAME + 30)), 255)
    for number, (name, tile) in enumerate(tiles.items()):
        left, top = number % columns * (FRAME + 12), number // columns * (FRAME + 30)
        sheet.paste(tile.crop((0, 0, FRAME, FRAME)), (left, top + 20))
        ImageDraw.Draw(sheet).text((left, top + 4), name, fill=0, font_size=13)
    return sheet


def main(options: PublishOptions) -> None:
    """Run the scripts one by one and publish each as it ends."""
    if not options.scripts:
        raise BadInput("--scripts: needs a value")
    arguments = [] if options.steps is None else ["--steps", options.steps]
    output = options.output.resolve()
    for script in tqdm(options.scripts, "runs", unit="run"):
        folder = (output.parent / f"{output.name}_cyclegan" if script == "cyclegan" else output) / script
        make_folder(folder)
        with tempfile.TemporaryDirectory() as temporary:
            path = ROOT / "scripts" / f"{script}.py"
            run = run_script(path, arguments, temporary)
            publish(run, folder, path, "a healthy run", LOOK_AT[script])
            grids = sample_grids(run)
            if script == "gan_conditional":
                [*grids.values()][-1].save(folder / "samples.png")
            elif script != "cyclegan":
                strip = {name: grids[name] for name in [*grids][:3] + [*grids][4:5] + [*grids][-1:]}
                contact_sheet(strip, len(strip)).save(folder / "samples.png")
    print(f"TensorBoard: tensorboard --logdir {output}")


if __name__ == "__main__":
    launch(main, PublishOptions)
