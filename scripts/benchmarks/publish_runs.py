"""Make `runs/reference/` again: a default run of every training script, thinned to a size for the repository.

    python scripts/benchmarks/publish_runs.py
    tensorboard --logdir runs/reference
    tensorboard --logdir runs/reference_cyclegan

Published are a run's TensorBoard events, without the pictures of step 0. A GAN also gets `samples.png`: the same noise
after 0, 250, 500 and 1,000 steps and at the end, or the last grid of a run with labels.
All runs together take a quarter of an hour on two cores.
"""

import os
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
from common.options import Count, Options, launch

LOOK_AT = {  # by script: what TensorBoard shows beside the curves
    "gan_detach": "D's loss stays a little below 0.69, that of guessing, and both probabilities near 0.5: the networks "
    "keep pace. The samples improve while the curves are flat, so judge the samples.",
    "gan_retain_graph": "Every point of every curve, and every sample, is that of gan_detach, to the bit. Only a step "
    "takes longer: compare the wall times (`Relative` below `Horizontal Axis`).",
    "gan_generator_first": "Every point is that of gan_simultaneous, to the bit: G steps first, on a loss of the "
    "same D. The run takes more steps than gan_detach.",
    "gan_simultaneous": "In the first steps D(x) and D(G(z)) part more than in gan_detach, as G answers a D that has "
    "not seen these fakes. It takes more steps to the same samples.",
    "gan_resample": "The curves are like those of gan_detach, with other noise for G's loss. Neither is better.",
    "gan_one_stage": "The curves begin as those of gan_simultaneous, whose update this is, and part as rounding "
    "differences grow. The samples are as good, and a step is cheaper.",
    "gan_wgan_gp": "The losses are scores without a limit: their size says nothing. `score/real` minus `score/fake` is "
    "the critic's distance between real and fake images; it falls as the samples improve.",
    "gan_r3": "D's loss is that of telling a real image from a fake one, 0.69 if it guesses. Penalties stay below 1: "
    "where one grows, D has become steep, and `--penalty-weight` is too low.",
    "gan_conditional": "Each column of the samples is one digit, each row has the same noise. The curves are like "
    "those of gan_detach: they do not show whether an image is of the class asked for.",
    "cyclegan": "`loss/cycle` falls steadily and tells most: an image comes back from the other domain as it was. "
    "`loss/discriminator`, the sum of both, nears 0.5, which is guessing for a squared error.",
}
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


def publish(run: Path, folder: Path, title: str, text: str) -> None:
    """Publish a run in `folder`, with a text; the files that were published there before are replaced, others stay.

    The pictures of step 0 are left out: real images, and noise, which no PNG makes smaller.
    """
    with SummaryWriter(run) as board:
        board.add_text(title, text)
    with (folder / "events.out.tfevents.0").open("wb") as file:
        writer = RecordWriter(file)
        for path in sorted(run.glob("events.out.tfevents.*")):
            for record in RawEventFileLoader(str(path)).Load():
                event = Event.FromString(record)
                if event.step or not any(value.HasField("image") for value in event.summary.value):
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
            run = run_script(ROOT / "scripts" / f"{script}.py", arguments, temporary)
            publish(run, folder, "what to look at", LOOK_AT[script])
            grids = sample_grids(run)
            if script == "gan_conditional":
                [*grids.values()][-1].save(folder / "samples.png")
            elif script != "cyclegan":
                strip = {name: grids[name] for name in [*grids][:3] + [*grids][4:5] + [*grids][-1:]}
                contact_sheet(strip, len(strip)).save(folder / "samples.png")
    print(f"TensorBoard: tensorboard --logdir {output}")


if __name__ == "__main__":
    launch(main, PublishOptions)
