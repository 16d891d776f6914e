"""Imports point one way: scripts to common, benchmarks to all, the audit to nothing but PyTorch."""

import ast
import sys

import pytest
from helpers import ROOT

ROOMS = {  # a room, and the rooms of ours that it may import
    "common/errors.py": set(),
    "common/data.py": {"common.errors"},
    "common/run": {"common.run", "common.data", "common.errors"},
    "common/images": {"common.images", "common.run", "common.data", "common.errors"},
    "common/training_run.py": {"common.images", "common.run", "common.data", "common.errors", "gradient_audit"},
    "gradient_audit": {"gradient_audit"},
    "scripts/tools": {"common", "scripts.tools", "gradient_audit"},
}
LEAVES = ["losses", "models", "cyclegan_models", "optimizers", "per_sample"]
ROOMS |= {f"common/{leaf}.py": set() for leaf in LEAVES}
TRAINING = {path.name: {"common"} for path in (ROOT / "scripts").glob("*.py")} | {"gan_standalone.py": set()}
ROOMS |= {f"scripts/{name}": allowed for name, allowed in TRAINING.items()}


def imports(path):
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize(("room", "allowed"), ROOMS.items(), ids=ROOMS)
def test_a_room_imports_only_what_lies_below_it(room, allowed):
    files = [ROOT / room] if room.endswith(".py") else list((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        ours = [name for name in imports(file) if name.split(".")[0] in ("common", "scripts", "gradient_audit")]
        assert [n for n in ours if not any(n == a or n.startswith(f"{a}.") for a in allowed)] == [], file


def test_the_audit_needs_torch_and_the_standard_library_alone():
    for file in (ROOT / "gradient_audit").rglob("*.py"):
        roots = {name.split(".")[0] for name in imports(file)} - {"gradient_audit", "torch"}
        assert roots <= sys.stdlib_module_names, file
