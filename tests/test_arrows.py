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
TORCH_ALONE = ["gradient_audit", *(f"common/{leaf}.py" for leaf in LEAVES)]  # and the standard library


# Of the audit: who may import whom, by the beginnings of names. What lies below both halves knows neither.
BELOW = ["places", "trace", "ledger", "history"]
JUDGING = ["findings", "steps", "facts", "terms", "players", "holders", "graphs", "errors", "rules", "judge"]
JUDGING += ["report", "page"]
HALVES = {
    "places": [],
    "trace": ["places", "trace"],
    "ledger": ["trace"],
    "history": ["places", "trace", "ledger"],
    "mistakes": ["mistakes"],
    "watch": ["watch", *BELOW],
    **{module: [*JUDGING, *BELOW, "mistakes"] for module in JUDGING},
    "audit": ["watch", *JUDGING, *BELOW],
    "explaining": ["watch", "findings", "mistakes"],
    "script": ["audit", "explaining", "watch", *JUDGING],
    "__main__": ["script", "page", "rules", "mistakes"],
    "__init__": ["findings"],
}


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
def test_a_room_imports_only_what_lies_below_it_the_audit_and_the_leaves_torch_alone(room, allowed):
    files = [ROOT / room] if room.endswith(".py") else list((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        ours = [name for name in imports(file) if name.split(".")[0] in ("common", "scripts", "gradient_audit")]
        assert [n for n in ours if not any(n == a or n.startswith(f"{a}.") for a in allowed)] == [], file
        if room in TORCH_ALONE:
            roots = {name.split(".")[0] for name in imports(file)} - {"gradient_audit", "torch"}
            assert roots <= sys.stdlib_module_names, file


def test_common_is_flat_and_at_most_eighteen_files_all_of_which_are_rooms_above():
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "common").rglob("*.py")} - {"common/__init__.py"}
    assert files == COMMON
    assert len(files) <= 18


def module_of(path):
    """The name of a module of the audit, as "watch.frames"."""
    parts = path.relative_to(ROOT / "gradient_audit").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


CHECKS = ("isinstance", "type", "hasattr")
AUDIT = {module_of(path): path for path in (ROOT / "gradient_audit").rglob("*.py")}


def arrows(path):
    """The modules of the audit that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("gradient_audit"):
            name = node.module.removeprefix("gradient_audit").strip(".")
            inside = [f"{name}.{alias.name}".strip(".") for alias in node.names]
            yield from {one if one in AUDIT else name for one in inside}


@pytest.mark.parametrize("module", AUDIT)
def test_the_halves_of_the_audit_do_not_know_each_other(module):
    allowed = HALVES[module.split(".")[0]]
    for name in arrows(AUDIT[module]):
        assert name.split(".")[0] in allowed, name
    roots = {name.split(".")[0] for name in imports(AUDIT[module])}
    assert "torch" not in roots or module.split(".")[0] in ("watch", "audit", "script", "mistakes")


def test_no_module_of_the_audit_leads_back_to_itself():
    ways = {module: {*arrows(path)} - {module} for module, path in AUDIT.items()}
    while leaves := {module for module, others in ways.items() if not others & ways.keys()}:
        ways = {module: others for module, others in ways.items() if module not in leaves}
    assert ways == {}


@pytest.mark.parametrize("module", AUDIT)
def test_nobody_gets_its_caller_as_an_object(module):
    for function in (n for n in ast.walk(ast.parse(AUDIT[module].read_text())) if isinstance(n, ast.FunctionDef)):
        given = [*function.args.args, *function.args.kwonlyargs]
        nodes = [*ast.walk(function)]
        objects = {one.arg for one in given if getattr(one.annotation, "id", "") == "object"}
        asked = {n.value.id for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
        calls = [n for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", "") in CHECKS]
        checked = {argument.id for call in calls for argument in call.args if isinstance(argument, ast.Name)}
        assert not (objects & asked) - checked, function.name
        if function.name == "__init__":
            assert not objects and all(one.annotation for one in given if one.arg != "self"), module


def test_no_file_of_the_audit_is_longer_than_250_lines():
    lengths = {module: len(path.read_text().splitlines()) for module, path in AUDIT.items()}
    assert {module: length for module, length in lengths.items() if length > 250} == {}
