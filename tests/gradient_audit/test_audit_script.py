"""Strangers' scripts under the audit, unchanged: each in a process of its own, as a user would run it.

Most of these processes are forked after torch is imported. The first, and one whose children import the script again,
are started as a user starts them.
"""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers import path_of
from processes import forked, python

from gradient_audit import __main__ as audit_script

AUDIT = path_of("audit_script")
STRANGERS = Path(__file__).parent / "strangers"


def run(*arguments, folder=None):
    return forked(AUDIT, *arguments, folder=folder)


def table(done):
    """The columns' names, and for each row of a backward pass its line, count and cells."""
    rows = [
        [cell.strip() for cell in row.strip("| ").split(" | ")]
        for row in done.stdout.splitlines()
        if row.startswith(("| backward", "| --", "| `"))
    ]
    header, _, *rows = rows
    assert header[:2] == ["backward pass", "times"]
    return header[2:], [(re.match(r"`\S+:(\d+) ", row[0]) and row[0].split()[0][1:], *row[1:]) for row in rows]


def line_of(script, text):
    lines = (STRANGERS / script).read_text().splitlines()
    return f"{Path(script).name}:{1 + next(i for i, line in enumerate(lines) if text in line)}"


def findings(done):
    return re.findall(r"^- \*\*(\S+)\*\*", done.stdout, flags=re.MULTILINE)


def write(folder, text):
    (folder / "train.py").write_text(text)
    return folder / "train.py"


@pytest.mark.tools
def test_work_at_import_time():
    script = "at_import_time.py"
    done = python(AUDIT, STRANGERS / script)
    assert table(done) == (
        ["generator", "discriminator"],
        [
            (line_of(script, "g_loss.backward()"), "3x", "used", "wasted"),
            (line_of(script, "d_loss.backward()"), "3x", "-", "used"),
        ],
    )
    assert findings(done) == ["wasted"]
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert done.stdout.startswith("[Epoch 0]")  # the script's own output comes through
    assert done.returncode == 0  # waste is not wrong
    assert not done.stderr


@pytest.mark.tools
def test_main_with_options_of_the_same_name_and_five_critic_steps():
    script = "main_with_options.py"
    done = run("--iterations", 2, STRANGERS / script, "--iterations", 1000, "--n-critic", 4)
    assert table(done) == (
        ["netG", "netD"],
        [
            (line_of(script, "netD(torch.randn(8, 4)).mean()"), "8x", "-", "used"),
            (line_of(script, "detach()"), "8x", "-", "used"),
            (line_of(script, "netD(netG(torch.randn(8, 8))).mean()"), "2x", "used", "-"),
        ],
    )
    assert findings(done) == ["graph"]  # samples for D are drawn with a graph
    assert f"[{line_of(script, 'detach()')}]" in done.stdout
    assert done.returncode == 0


def test_a_trainer_that_catches_every_exception():
    """The networks carry the names by which the trainer knows them; a copy that no loss reaches is no column."""
    done = run(STRANGERS / "trainer_class.py")
    columns, rows = table(done)
    assert columns == ["self.G", "self.nets['D']"]
    assert [row[1:] for row in rows] == [("3x", "-", "used"), ("3x", "used", "wasted")]
    assert findings(done) == ["wasted", "graph"]
    assert done.returncode == 0
    assert "skipping a batch" not in done.stdout


@pytest.mark.tools
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_three_optimizers_and_loader_workers(start_method):
    """Under spawn the workers import the script again, as `__mp_main__`: they must not be audited, too."""
    done = (forked if start_method == "fork" else python)(AUDIT, STRANGERS / "several_optimizers.py", start_method)
    columns, rows = table(done)
    assert columns == ["encoder", "decoder", "critic"]
    assert [row[1:] for row in rows] == [("3x", "used", "used", "-"), ("3x", "-", "-", "used")]
    assert findings(done) == [
        "meant?",
        "unused",
    ]  # the loss is an autoencoder's; codes for the critic are drawn with a graph
    assert done.returncode == 0
    assert done.stdout.count("Stopped after") == 1
    assert not done.stderr


def test_gradient_penalty_under_grad_scaler():
    done = run(STRANGERS / "gradient_penalty.py")
    columns, rows = table(done)
    assert columns == ["generator", "critic"]
    assert [row[1:] for row in rows] == [("6x", "-", "read"), ("6x", "-", "used"), ("3x", "used", "-")]
    assert re.search(r"\(gradients,\) = autograd.grad.*` \(create_graph\) *\| 6x", done.stdout)
    assert findings(done) == ["graph"]
    assert done.returncode == 0


def test_the_in_place_error():
    """What was seen until then, the script's own error, and the mistake behind it."""
    script = "in_place_error.py"
    done = run(STRANGERS / script)
    assert table(done) == (
        ["G", "D"],
        [
            (line_of(script, "D_loss.backward"), "1x", "wasted", "used"),
            (line_of(script, "G_loss.backward"), "1x", "-", "-"),
        ],
    )
    assert findings(done) == ["overwritten", "wasted"]  # G's optimizer never stepped, but there is one
    writer, reader, wanted = (line_of(script, text) for text in ("D_solver.step", "D_real, D_fake", "G_loss.backward"))
    assert f"[{writer}, {reader}, {wanted}] Compute the forward pass again after the step" in done.stdout
    assert "needs `D.2.weight`" in done.stdout
    assert "scripts/tools" not in done.stderr  # no frame of the audit
    assert "raised |" in re.sub(" +", " ", done.stdout)
    assert "The script raised RuntimeError: one of the variables needed for gradient computation" in done.stdout
    assert "This is the mistake" in done.stdout
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_two_networks_in_one_module_and_d_not_frozen():
    script = "unfrozen.py"
    done = run(STRANGERS / script)
    assert table(done) == (
        ["gan.generator", "gan.discriminator"],
        [
            (line_of(script, "d_loss.backward"), "3x", "-", "used"),
            (line_of(script, "g_loss.backward"), "3x", "used", "used"),
        ],
    )
    assert findings(done) == ["mixed"]
    assert done.returncode == 1


def test_own_folder_own_arguments_own_module_called_common(tmp_path):
    """The script runs as `__main__` in its folder, from wherever the audit was started, and ends by itself."""
    done = run(STRANGERS / "own_common" / "train.py", "--flag", "-x", "1", folder=tmp_path)
    assert "arguments: ['--flag', '-x', '1'] name: __main__" in done.stdout
    assert table(done)[0] == ["net"]
    assert table(done)[1][0][1:] == ("2x", "used")
    assert "The script ended by itself." in done.stdout
    assert done.returncode == 0


def test_an_optimizer_that_never_steps_ends_at_the_limit(tmp_path):
    script = """
import torch
a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
steps, never = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
while True:
    steps.zero_grad()
    b(a(torch.ones(1, 2))).sum().backward()
    steps.step()
"""
    done = run("--limit", 7, write(tmp_path, script))
    assert table(done)[1] == [("train.py:7", "7x", "used", "wasted")]
    assert "Stopped after 7 steps of one optimizer; SGD of b had not stepped 3 times. `--limit` waits" in done.stdout
    assert findings(done) == ["idle"]
    assert "**idle** (question)" in done.stdout
    assert done.returncode == 0


def test_copied_networks_are_found_too(tmp_path):
    """Printed on a terminal that has ASCII alone."""
    script = """
import copy, torch; 输入 = torch.randn(1, 2, 4)
first = torch.nn.TransformerEncoderLayer(4, 1, 4)
second = copy.deepcopy(first)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(9):
    optimizer.zero_grad()
    second(first(输入)).square().sum().backward()
    optimizer.step()
"""
    done = python(AUDIT, write(tmp_path, script), PYTHONIOENCODING="ascii")
    assert table(done) == (["first", "second"], [("train.py:8", "3x", "used", "used")])
    assert done.returncode == 0


@pytest.mark.tools
@pytest.mark.parametrize("form", ["networks", "step", "optimizers"])
def test_compiled_scripts_run_as_they_do_alone(form):
    """Also `fullgraph=True`, which bears no call of the audit's inside the graph. Compilation makes no networks."""
    script = STRANGERS / "compiled.py"
    done = run(script, form, "endless")
    columns, rows = table(done)
    assert columns == ["G", "D"]
    assert [row[1:] for row in rows] == [("3x", "-", "used"), ("3x", "used", "wasted")]
    assert findings(done) == ["wasted"]
    assert "Stopped after 3 steps" in done.stdout
    assert done.returncode == 0
    if form == "networks":
        alone = forked(script, form)
        assert alone.stdout.splitlines()[0] == done.stdout.splitlines()[0]  # the weights, to the bit


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("import sys; sys.exit(0)", 0, "No backward pass ran.\n\nThe script ended by itself."),
        ("import no_such_module", 1, "The script raised ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_scripts_that_train_nothing(tmp_path, script, status, said):
    done = run(write(tmp_path, script))
    assert said in done.stdout
    assert "mistake" not in done.stdout
    assert done.returncode == status


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nothing.py"], "there is no file nothing.py"),
        (["--iterations", "0", __file__], "--iterations"),
        (["--iterations", "three", __file__], "--iterations"),
        ([], "SCRIPT"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, named, monkeypatch, capsys):
    assert named in refused(monkeypatch, capsys, *arguments)


def refused(monkeypatch, capsys, *arguments):
    """The one line with which the audit, which has a parser of its own, refuses a command line."""
    monkeypatch.setattr(sys, "argv", ["audit_script.py", *arguments])
    with pytest.raises(SystemExit) as exit:
        audit_script.main()
    assert exit.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


CELLS = [
    "%matplotlib inline\nimport torch\n!pip install nothing\n",
    "%%time\nnot python\n",
    """model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
""",
]


def test_a_notebook_is_its_code_cells_and_its_places_name_them(tmp_path):
    cells = [{"cell_type": "markdown", "source": ["# A loop"]}]
    cells += [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in CELLS]
    (tmp_path / "loop.ipynb").write_text(json.dumps({"cells": cells}))
    done = run("--output", tmp_path / "report.html", tmp_path / "loop.ipynb")
    assert "**stale** (error): an optimizer of model stepped on gradients older" in done.stdout
    assert "[loop.ipynb[3]:4, loop.ipynb[3]:5]" in done.stdout
    assert "    4      model(torch.ones(1, 2)).sum().backward()" in (tmp_path / "report.html").read_text()
    skipped = re.findall(r"note: loop\.ipynb\[(\d)\]: (.*) is skipped", done.stderr)
    assert skipped == [("1", "%matplotlib inline"), ("1", "!pip install nothing"), ("2", "%%time")]


def test_an_option_of_the_audit_after_the_script_is_the_scripts_and_is_noted(tmp_path):
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    done = run(tmp_path / "train.py", "--strict")
    assert "['--strict']" in done.stdout
    assert "note: --strict goes to the script" in done.stderr
