"""Imports point one way: scripts to common, run to errors; the audit and the leaves need nothing of ours."""

import ast
import sys

import pytest
from helpers import ROOT

LEAVES = ["augment", "losses", "penalties", "models", "cyclegan_models", "optimizers", "per_sample"]
LAYERS = [["errors"], ["image_files"], ["data", "ranks"], ["checkpoint", "conditional", "domains"]]
LAYERS += [["options"], ["board"], ["run"], ["launch"]]  # each may import what is in those before it
USED = {"conditional": ["models"], "options": ["augment", "models"]}
ROOMS = {f"common/{leaf}.py": set() for leaf in LEAVES}  # a room, and the modules of ours that it may import
for number, layer in enumerate(LAYERS):
    below = {f"common.{name}" for lower in LAYERS[:number] for name in lower}
    ROOMS |= {f"common/{name}.py": below | {f"common.{leaf}" for leaf in USED.get(name, [])} for name in layer}
COMMON = set(ROOMS)
ROOMS |= {f"scripts/{path.name}": {"common"} for path in (ROOT / "scripts").glob("*.py")}
ROOMS |= {"scripts/gan_standalone.py": set(), "scripts/tools": {"common", "scripts.tools"}}
ROOMS["gradient_audit"] = {"gradient_audit"}


def imports(path):
    """The modules that a file imports, wherever in it; `common.data` for `from common import data`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            names = [alias.name for alias in node.names] if node.module in ("common", "scripts") else [""]
            yield from (f"{node.module}.{name}".strip(".") for name in names)


@pytest.mark.parametrize(("room", "allowed"), ROOMS.items(), ids=ROOMS)
def test_a_room_imports_only_what_lies_below_it(room, allowed):
    files = [ROOT / room] if room.endswith(".py") else list((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        ours = [name for name in imports(file) if name.split(".")[0] in ("common", "scripts", "gradient_audit")]
        assert [n for n in ours if not any(n == a or n.startswith(f"{a}.") for a in allowed)] == [], file


def test_common_is_flat_and_at_most_eighteen_files_all_of_which_are_rooms_above():
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "common").rglob("*.py")} - {"common/__init__.py"}
    assert files == COMMON
    assert len(files) <= 18


@pytest.mark.parametrize("part", ["gradient_audit", *(f"common/{leaf}.py" for leaf in LEAVES)])
def test_the_audit_and_the_leaves_need_torch_and_the_standard_library_alone(part):
    for file in [ROOT / part] if part.endswith(".py") else (ROOT / part).rglob("*.py"):
        roots = {name.split(".")[0] for name in imports(file)} - {"gradient_audit", "torch"}
        assert roots <= sys.stdlib_module_names, file
