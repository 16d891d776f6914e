"""What the tests share: the scripts by name, and where each of them is."""

import importlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORDERS = ["retain_graph", "detach", "generator_first", "simultaneous", "resample", "one_stage"]
GANS = [f"gan_{order}" for order in ORDERS]
TRAINING = [*GANS, "cyclegan"]


def path_of(script):
    """Return the path of a script, which lies in `scripts/` or in `scripts/tools/`."""
    return next(path for path in (ROOT / "scripts").rglob("*.py") if path.stem == script)


def module_of(script):
    """Return a script as a module."""
    return importlib.import_module(".".join(path_of(script).relative_to(ROOT).with_suffix("").parts))
