"""What a silent mistake looks like: gan_detach.py with one mistake at a time, as curves, samples and figures.

    python scripts/benchmarks/gallery.py
    tensorboard --logdir runs/mistakes

Each mistake of `common/measure/silent_mistakes.py` changes a few lines of a copy of `scripts/gan_detach.py`, which then
trains. Its curves and samples are published in `runs/mistakes/<name>/`, beside those of the unchanged script. The table
has the means over the last 100 steps, the FID of 1,000 samples by `evaluate.py`, and what the audit finds in the first
three steps. All runs together take some five minutes on two cores.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from annotated_types import MinLen
from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` importable from any folder

from common.errors import BadInput, Stopped
from common.run.command_line import launch
from common.run.folder import shown, write_whole
from common.run.markdown import table
from common.run.option_values import Count, check_numbers
from scripts.benchmarks.gallery_edits import MISTAKES, Mistake
from scripts.benchmarks.publish_runs import check_published, publish
from scripts.tools import evaluate

CURVES = {
    "D loss": "loss/discriminator",
    "G loss": "loss/generator",
    "D(x)": "probability/real",
    "D(G(z))": "probability/fake",
}
TILE = 4 * 58 + 2  # pixels of four digits in a sample grid
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}  # the copies are not in scripts/
NAMES = tuple(mistake.name for mistake in MISTAKES)


@dataclass(frozen=True)
class Options:
    """Options of the gallery."""

    mistakes: Annotated[tuple[str, ...], MinLen(1)] = NAMES
    """Mistakes to make, by name."""
    output: Path = ROOT / "runs" / "mistakes"
    """Where each run's folder is made. A folder published before is replaced, any other is refused."""
    steps: Count = 600
    """Steps of each run."""


def train(mistake: Mistake, script: Path, steps: int) -> Path:
    """Train `script`, a copy of gan_detach.py with `mistake`, beside it; return the run."""
    often = ["--log-every", max(1, steps // 60), "--sample-every", max(1, steps // 2), "--checkpoint-every", steps]
    command = [sys.executable, script, "--runs-dir", "runs", "--steps", steps, *often, *mistake.arguments]
    done = subprocess.run([*map(str, command)], cwd=script.parent, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise Stopped(f"{mistake.name} failed with the message above; the runs published before are kept")
    (run,) = (script.parent / "runs" / mistake.name).iterdir()
    return run


def found_by_audit(mistake: Mistake, script: Path) -> str:
    """Return the kinds of what audit_script.py finds in three steps of `script`, or a dash."""
    report = script.with_suffix(".json")
    command = [sys.executable, ROOT / "scripts" / "tools" / "audit_script.py", "--output", report, script]
    subprocess.run([*command, "--runs-dir", "audited", *mistake.arguments], env=ENVIRONMENT, capture_output=True)
    findings = json.loads(report.read_text())["findings"]
    return ", ".join(dict.fromkeys(finding["kind"] for finding in findings)) or "-"


def fid(script: Path, run: Path) -> float:
    """Return the FID of 1,000 samples of a run of `script`, with the features of the digit classifier."""
    networks = f"{script}:make_networks" if "def make_networks" in script.read_text() else None
    with contextlib.redirect_stdout(io.StringIO()):
        evaluate.main(evaluate.Options(run, count=1000, networks=networks))
    return json.loads((run / "evaluation.json").read_text())[0]["samples"]["fid"]


def late_means(run: Path, steps: int) -> list[float]:
    """Return the mean of each of CURVES over the last 100 steps."""
    events = EventAccumulator(str(run)).Reload()
    late = [[point.value for point in events.Scalars(tag) if point.step > steps - 100] for tag in CURVES.values()]
    return [sum(values) / len(values) for values in late]


def gallery(tiles: dict[str, Image.Image]) -> Image.Image:
    """Return samples of the runs side by side, four to a row, each under its name."""
    rows = -(-len(tiles) // 4)
    sheet = Image.new("L", (4 * (TILE + 12) - 12, rows * (TILE + 30)), 255)
    for number, (name, tile) in enumerate(tiles.items()):
        left, top = number % 4 * (TILE + 12), number // 4 * (TILE + 30)
        sheet.paste(tile, (left, top + 20))
        ImageDraw.Draw(sheet).text((left, top + 4), name, fill=0, font_size=13)
    return sheet


def main(options: Options) -> None:
    """Make each mistake, publish its run, and print the table."""
    check_numbers(options)
    if unknown := set(options.mistakes) - set(NAMES):
        raise BadInput(f"--mistakes {min(unknown)}: not one of {', '.join(NAMES)}")
    for name in options.mistakes:
        check_published(options.output / name)
    options.output.mkdir(parents=True, exist_ok=True)
    rows, tiles = [], {}
    chosen = [mistake for mistake in MISTAKES if mistake.name in options.mistakes]
    for mistake in tqdm(chosen, "runs", unit="run"):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, f"{mistake.name}.py")
            script.write_text(mistake.apply((ROOT / "scripts" / "gan_detach.py").read_text()))
            run = train(mistake, script, options.steps)
            publish(mistake.name, run, options.output, digits=False)
            tiles[mistake.name] = Image.open(max((run / "samples").iterdir())).convert("L").crop((0, 0, TILE, TILE))
            numbers = [*late_means(run, options.steps), fid(script, run)]
            rows.append(
                [f"`{mistake.name}`", mistake.text, *(f"{n:.2f}" for n in numbers), found_by_audit(mistake, script)]
            )
    text = table(["run", "mistake", *CURVES, "FID", "audit"], rows)
    picture = gallery(tiles)
    write_whole(options.output / "samples.png", lambda file: picture.save(file, "png"))
    write_whole(options.output / "table.md", lambda file: file.write(f"{text}\n".encode()))
    print(f"{text}\n\nSamples:     {shown(options.output / 'samples.png')}")
    print(f"TensorBoard: tensorboard --logdir {shown(options.output)}")


if __name__ == "__main__":
    launch(main, Options)
