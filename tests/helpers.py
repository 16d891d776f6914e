"""What the tests share: the scripts by name, where each of them is, and its command line run in this process."""

import importlib
import sys
from pathlib import Path
from unittest import mock

import torch
from PIL import Image

from common.options import launch

ROOT = Path(__file__).resolve().parents[1]
ORDERS = ["retain_graph", "detach", "generator_first", "simultaneous", "resample", "one_stage", "wgan_gp", "r3"]
PENALTIES = ["wgan_gp", "r3"]  # those whose D is no judge of probabilities, and is differentiated twice
GANS = [f"gan_{order}" for order in ORDERS]
TRAINING = [*GANS, "gan_conditional", "cyclegan"]


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
    with mock.patch.object(sys, "argv", [module.__name__.split(".")[-1], *map(str, arguments)]):
        launch(module.main, module.main.__annotations__["options"])


def make_images(folder, count, size=8):
    """Make a folder of greyscale images `0.png`, `1.png`, ..., each of one shade, lighter from one to the next."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.new("L", (size, size), 12 * number).save(folder / f"{number}.png")
    return folder


def contents(folder):
    """Return what is below a folder, by its path: the bytes of a file, False for a folder."""
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


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
