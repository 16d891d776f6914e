"""What the tests share: the scripts by name, where each of them is, and its command line run in this process."""

import importlib
import struct
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import launch as launching
from common.checkpoint import load_checkpoint
from common.options import RunOptions
from scripts.tools.output import launch

ROOT = Path(__file__).resolve().parents[1]
ORDERS = ["retain_graph", "detach", "generator_first", "simultaneous", "resample", "one_stage", "wgan_gp", "r3"]
PENALTIES = ["wgan_gp", "r3"]  # those whose D is no judge of probabilities, and is differentiated twice
GANS = [f"gan_{order}" for order in ORDERS]
TRAINING = [*GANS, "gan_conditional", "cyclegan"]
SMALL = ["--model", "mlp", "--image-size", "8", "--batch-size", "4", "--device", "cpu"]


def path_of(script):
    """Return the path of a script, which lies in `scripts/` or in a folder there."""
    return next(path for path in (ROOT / "scripts").rglob("*.py") if path.stem == script)


def module_of(script):
    """Return a script as a module."""
    return importlib.import_module(".".join(path_of(script).relative_to(ROOT).with_suffix("").parts))


def options_of(script):
    """Return the dataclass of a script's options."""
    return module_of(script).main.__annotations__["options"]


def call(script, *arguments):
    """Do in this process what the command line `script *arguments` does; raises SystemExit where it ends the process.

    script: a name, or a module.
    """
    module = module_of(script) if isinstance(script, str) else script
    kinds = module.main.__annotations__
    with mock.patch.object(sys, "argv", [module.__name__.split(".")[-1], *map(str, arguments)]):
        if "run" in kinds:
            launching.launch_run(module.__file__, module.main, kinds["options"])
        else:
            launch(module.main, kinds["options"])


def train(module, options):
    """Train in this process by the main of a script, a module."""
    with launching.open_run(module.__file__, options) as run:
        module.main(options, run)


@contextmanager
def open_run(folder, resume=None, **options):
    """Yield a run that needs nothing but `RunOptions`, in `folder` or continued."""
    options = {"batch_size": 4, "steps": 3, "device": "cpu", "runs_dir": folder, "resume": resume} | options
    with ExitStack() as opened:
        stored = load_checkpoint(resume, opened) if resume else None
        yield opened.enter_context(launching.open_run(Path("script.py").absolute(), RunOptions(**options), stored))


def steps_of(folder, *data, state=None, pictures=None, **options):
    """Yield the steps of such a run."""
    with open_run(folder, **options) as run:
        yield from run.steps(*data, state=state or {}, pictures=pictures or {})


def logged(folder, results, *data, **options):
    """Train nothing in such a run, and log `results(step)`; return its folder."""
    with open_run(folder, **options) as run:
        for step, *_ in run.steps(*data, state={}, pictures={}):
            run.log(step, results(step))
    return run.folder


def make_images(folder, count, size=8, darkest=0):
    """Make a folder of greyscale images `000.png`, `001.png`, ..., each of one shade, from the darkest on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.new("L", (size, size), darkest + number).save(folder / f"{number:03}.png")
    return folder


def contents(folder):
    """Return what is below a folder, by its path: the bytes of a file, False for a folder."""
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def points_of(run):
    """Return the points (step, value) of each of TensorBoard's curves in a run, by tag, in the order of their times."""
    events = EventAccumulator(str(run)).Reload()  # of files of one second, it reads `.10` before `.9`
    points = {tag: sorted(events.Scalars(tag), key=lambda point: point.wall_time) for tag in events.Tags()["scalars"]}
    return {tag: [(point.step, point.value) for point in of_tag] for tag, of_tag in points.items()}


def load(run):
    """Return the checkpoint in the folder of a run."""
    return torch.load(run / "checkpoint.pt", weights_only=True)


def saved(runs):
    """Return the one checkpoint below `runs`."""
    (run,) = runs.glob("*/*")
    return load(run)


def change(run, make):
    """Change the run's checkpoint with `make`, in place."""
    checkpoint = load(run)
    make(checkpoint)
    torch.save(checkpoint, run / "checkpoint.pt")


def write_idx(folder, name, pixels, labels):
    """Write the files of one part of MNIST, or of a data set of its format."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, len(labels)) + bytes(labels))
