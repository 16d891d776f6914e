"""Make `runs/reference` or `runs/mistakes` again: runs thinned to a size for the repository.

Of each run the TensorBoard events are published, without the samples of step 0. `reference` has a default run of every
training script, in a quarter of an hour on two cores; each GAN also gets `samples.png`: the same noise after 0, 250,
500 and 1,000 steps and at the end, or the last grid of a run with labels. `mistakes` has `gan_detach.py` with one
mistake of `silent_mistakes.py` at a time, in some seven minutes; `table.md` has the means over the last 100 steps, the
FID by `evaluate.py`, of 1,000 samples, and what `python -m gradient_audit` finds in the first three steps.

    python scripts/benchmarks/publish_runs.py
    python scripts/benchmarks/publish_runs.py --what mistakes
    tensorboard --logdir runs/mistakes
"""

import io
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.board import TAGS
from common.checkpoint import write_whole
from common.errors import as_bad_input
from common.options import Count, Options
from scripts.benchmarks.harness import ENVIRONMENT, ROOT, run_script
from scripts.benchmarks.silent_mistakes import MISTAKES
from scripts.tools import evaluate
from scripts.tools.output import launch, table

SCRIPTS = ("gan_detach", "gan_retain_graph", "gan_generator_first", "gan_simultaneous", "gan_resample", "gan_one_stage")
SCRIPTS += ("gan_wgan_gp", "gan_r3", "gan_conditional", "cyclegan")  # docs/curves.md says what to look at in each
CURVES = dict(zip(("D loss", "G loss", "D(x)", "D(G(z))"), TAGS.values(), strict=True))
FRAME = 4 * 58 + 2  # pixels of four digits side by side in a grid


@dataclass(frozen=True)
class PublishOptions(Options):
    """Options of the publication."""

    what: Literal["reference", "mistakes"] = "reference"  # Default runs of all scripts; or silent mistakes.
    scripts: tuple[Literal[SCRIPTS], ...] = SCRIPTS  # Training scripts to run for `reference`, by name.
    output: Path = ROOT / "runs"
    """Where the folder `reference` or `mistakes` is made; CycleGAN, whose curves are others, has `reference_cyclegan`.
    Files published there before are replaced, others stay."""
    steps: Count | None = None  # Steps of each run. None: the scripts' defaults; 600 for mistakes.


def publish(run: Path, folder: Path, note: str = "") -> None:
    """Publish a run in `folder`, with a note on its mistake; other files there stay."""
    if note:
        with SummaryWriter(run) as board:
            board.add_text("mistake", note)
    file = io.BytesIO()
    writer = RecordWriter(file)
    for path in sorted(run.glob("events.out.tfevents.*")):
        for record in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(record)
            # The samples of step 0 are noise, which no PNG makes smaller.
            if event.step or not any(value.tag.startswith("images/") for value in event.summary.value):
                writer.write(record)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "events.out.tfevents.0", file.getvalue())


def sample_grids(run: Path) -> dict[str, Image.Image]:
    """Return a run's sample grids by their file's name, in the order of their steps."""
    return {path.stem: Image.open(path).copy() for path in sorted((run / "samples").iterdir())}


def contact_sheet(tiles: dict[str, Image.Image], columns: int) -> Image.Image:
    """Return four by four digits from the upper left of each grey grid side by side, each under its name."""
    rows = -(-len(tiles) // columns)
    sheet = Image.new("L", (columns * (FRAME + 12) - 12, rows * (FRAME + 30)), 255)
    for number, (name, tile) in enumerate(tiles.items()):
        left, top = number % columns * (FRAME + 12), number // columns * (FRAME + 30)
        sheet.paste(tile.crop((0, 0, FRAME, FRAME)), (left, top + 20))
        ImageDraw.Draw(sheet).text((left, top + 4), name, fill=0, font_size=13)
    return sheet


def publish_reference(options: PublishOptions) -> None:
    """Run the scripts one by one and publish each as it ends."""
    arguments = [] if options.steps is None else ["--steps", options.steps]
    for script in tqdm(options.scripts, "runs", unit="run"):
        folder = options.output / ("reference_cyclegan" if script == "cyclegan" else "reference") / script
        with tempfile.TemporaryDirectory() as temporary:
            run = run_script(ROOT / "scripts" / f"{script}.py", arguments, Path("runs"), temporary)
            publish(run, folder)
            grids = sample_grids(run)
        if script == "gan_conditional":
            [*grids.values()][-1].save(folder / "samples.png")
        elif script != "cyclegan":
            strip = {name: grids[name] for name in [*grids][:3] + [*grids][4:5] + [*grids][-1:]}
            contact_sheet(strip, len(strip)).save(folder / "samples.png")


def publish_mistakes(options: PublishOptions) -> None:
    """Make each mistake, publish its run, and print the table."""
    rows, tiles, steps, output = [], {}, options.steps or 600, options.output / "mistakes"
    arguments = ["--steps", steps, "--log-every", max(1, steps // 60), "--sample-every", max(1, steps // 2)]
    for mistake in tqdm(MISTAKES, "runs", unit="run"):
        with tempfile.TemporaryDirectory() as temporary:
            script = Path(temporary, f"{mistake.name}.py")
            script.write_text(mistake.change((ROOT / "scripts" / "gan_detach.py").read_text()))
            run = run_script(script, [*arguments, *mistake.arguments], Path("runs"), temporary)
            board = EventAccumulator(str(run)).Reload()
            means = [mean(p.value for p in board.Scalars(tag) if p.step > steps - 100) for tag in CURVES.values()]
            publish(run, output / mistake.name, mistake.note())
            *_, tiles[mistake.name] = sample_grids(run).values()
            fid = evaluate.evaluate_run(evaluate.Options(run, count=1000))["samples"]["fid"]
            numbers = [f"{number:.2f}" for number in (*means, fid)]
            rows.append([f"`{mistake.name}`", mistake.text, *numbers, audit_findings(script, mistake.arguments)])
    text = table(["run", "mistake", *CURVES, "FID", "audit"], rows)
    print(text, flush=True)
    contact_sheet(tiles, 4).save(output / "samples.png")
    write_whole(output / "table.md", f"{text}\n".encode())


def audit_findings(script: Path, arguments: tuple[str, ...]) -> str:
    """Return the kinds of what the audit finds in three steps of `script`, or a dash; `gave up` where it tells none."""
    report = script.with_suffix(".md")
    command = [sys.executable, "-m", "gradient_audit", "--output", report, script, *arguments]
    status = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL).returncode
    text = report.read_text() if report.exists() else ""
    kinds = re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)
    if "The audit gave up: " in text or (status and not kinds):
        kinds.append("gave up")
    return ", ".join(dict.fromkeys(kinds)) or "-"


def main(options: PublishOptions) -> None:
    """Make the runs and publish them."""
    output = options.output / options.what
    with as_bad_input("--output", OSError):  # before the training
        output.mkdir(parents=True, exist_ok=True)
    {"reference": publish_reference, "mistakes": publish_mistakes}[options.what](options)
    for folder in (output, output.with_name(f"{output.name}_cyclegan")):
        if folder.is_dir() and any(folder.iterdir()):
            print(f"TensorBoard: tensorboard --logdir {folder.resolve()}")


if __name__ == "__main__":
    launch(main, PublishOptions)
