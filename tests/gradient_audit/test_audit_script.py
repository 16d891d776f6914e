"""Scripts under the audit, unchanged, each in a process of its own: those of strangers, and what they may contain.

Most of these processes are forked after torch is imported. One whose children import the script again is started as a
user starts it.
"""

import inspect
import json
import re
import sys
from pathlib import Path

import pytest
from processes import ROOT, RUN_AUDIT, forked, program, python
from torch import nn
from torch.optim.optimizer import Optimizer

from gradient_audit import GradientAudit
from gradient_audit import __main__ as command
from gradient_audit.networks import FoundNetworks

STRANGERS = Path(__file__).parent / "strangers"
LIBRARIES = Path(__file__).parent / "museum" / "site-packages"


def run(*arguments, folder=None):
    return forked(RUN_AUDIT, *arguments, folder=folder)


def table(done, script):
    """The columns' names, and for each backward pass the line of the script that is named, its count and its cells."""
    lines = script.read_text().splitlines()
    printed = [line for line in done.stdout.splitlines() if line.startswith(("| backward", f"| `{script.name}:"))]
    header, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed]
    assert header[:2] == ["backward pass", "times"]
    return header[2:], [(lines[int(re.search(r":(\d+) ", row[0])[1]) - 1].strip(), *row[1:]) for row in rows]


def findings(done):
    return re.findall(r"^- \*\*(\S+)\*\*", done.stdout, flags=re.MULTILINE)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a script and returns its path."""

    def write(text):
        (tmp_path / "train.py").write_text(text)
        return tmp_path / "train.py"

    return write


# Strangers' scripts.


@pytest.mark.parametrize(
    ("script", "columns", "rows", "kinds"),
    [
        (
            "at_import_time.py",
            ["generator", "discriminator"],
            [("g_loss.backward()", "3x", "used", "wasted"), ("d_loss.backward()", "3x", "-", "used")],
            ["wasted"],
        ),
        (
            "trainer_class.py",  # networks have the names by which the trainer knows them; a copy is no column
            ["self.G", "self.nets['D']"],
            [("loss.backward()", "3x", "-", "used"), ("loss.backward()", "3x", "used", "wasted")],
            ["wasted", "graph"],
        ),
        (
            "gradient_penalty.py",
            ["generator", "critic"],
            [
                ("(gradients,) = autograd.grad(critic(mixed).sum(), mixed, create_graph=True)", "6x", "-", "read"),
                ("scaler.scale(loss_c).backward()", "6x", "-", "used"),
                ("scaler.scale(loss_g).backward()", "3x", "used", "-"),
            ],
            ["graph"],
        ),
        (
            "unfrozen.py",
            ["gan.generator", "gan.discriminator"],
            [("d_loss.backward()", "3x", "-", "used"), ("g_loss.backward()", "3x", "used", "used")],
            ["mixed"],
        ),
    ],
)
def test_a_stranger_has_its_table_and_findings_and_is_stopped(script, columns, rows, kinds):
    done = run(STRANGERS / script)
    assert table(done, STRANGERS / script) == (columns, rows)
    assert findings(done) == kinds
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert "skipping a batch" not in done.stdout  # an `except Exception` does not catch what stops the script
    assert not done.stderr
    assert done.returncode == ("mixed" in kinds)  # waste and questions are not wrong


def test_options_before_the_script_are_the_audits_and_those_after_it_the_scripts():
    script = STRANGERS / "main_with_options.py"
    done = run("--iterations", 2, script, "--iterations", 1000, "--n-critic", 4)
    assert table(done, script) == (
        ["netG", "netD"],
        [
            ("netD(torch.randn(8, 4)).mean().backward()", "8x", "-", "used"),
            ("netD(netG(torch.randn(8, 8)).detach()).mean().mul(-1).backward()", "8x", "-", "used"),
            ("netD(netG(torch.randn(8, 8))).mean().backward()", "2x", "used", "-"),
        ],
    )
    assert findings(done) == ["graph"]  # samples for D are drawn with a graph


@pytest.mark.tools
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_three_optimizers_and_loader_workers(start_method):
    """Under spawn the workers import the script again, as `__mp_main__`: they must not be audited, too."""
    script = STRANGERS / "several_optimizers.py"
    done = (forked if start_method == "fork" else python)(RUN_AUDIT, script, start_method)
    assert table(done, script) == (
        ["encoder", "decoder", "critic"],
        [("reconstruction.backward()", "3x", "used", "used", "-"), ("critic_loss.backward()", "3x", "-", "-", "used")],
    )
    assert findings(done) == ["meant?", "graph"]  # an autoencoder's loss; codes for the critic are drawn with a graph
    assert done.returncode == 0
    assert done.stdout.count("Stopped after") == 1
    assert not done.stderr


def test_the_in_place_error():
    """What was seen until then, the script's own error, and the mistake behind it."""
    script = STRANGERS / "in_place_error.py"
    done = run(script)
    assert table(done, script) == (
        ["G", "D"],
        [("D_loss.backward(retain_graph=True)", "1x", "wasted", "used"), ("G_loss.backward()", "1x", "-", "-")],
    )
    assert findings(done) == ["overwritten", "wasted"]  # G's optimizer never stepped, but there is one
    assert "needs `D.2.weight`" in done.stdout
    assert "raised |" in re.sub(" +", " ", done.stdout)
    assert "The script raised RuntimeError: one of the variables needed for gradient computation" in done.stdout
    assert "This is the mistake" in done.stdout
    assert "Traceback" in done.stderr
    assert not re.search(r"/gradient_audit/\w+\.py", done.stderr)  # no frame of the audit
    assert done.returncode == 1


def test_current_folder_own_arguments_own_module_called_common(tmp_path):
    """The script runs as `__main__` where the audit was started, imports from its own folder, and ends by itself."""
    (tmp_path / "settings.txt").write_text("0.1")
    script = STRANGERS / "own_common" / "train.py"
    done = run(script, "--flag", "-x", "1", folder=tmp_path)
    assert "arguments: ['--flag', '-x', '1'] name: __main__" in done.stdout
    columns, ((_, *cells),) = table(done, script)
    assert (columns, cells) == (["net"], ["2x", "used"])
    assert "The script ended by itself." in done.stdout
    assert done.returncode == 0


def test_an_audited_training_script_leaves_nothing(tmp_path):
    runs, scratch = tmp_path / "runs", tmp_path / "scratch"
    runs.mkdir()
    scratch.mkdir()
    options = [
        "--steps",
        "5",
        "--model",
        "mlp",
        "--image-size",
        "8",
        "--batch-size",
        "4",
        "--device",
        "cpu",
        "--runs-dir",
    ]
    done = python(RUN_AUDIT, ROOT / "scripts" / "gan_detach.py", *options, runs, TMPDIR=str(scratch))
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert done.returncode == 0
    assert not [*runs.iterdir(), *scratch.glob("tmp*")]


def test_a_script_can_tell_that_it_is_audited(tmp_path):
    (tmp_path / "train.py").write_text("import os; print('told:', os.environ['GRADIENT_AUDIT']); os.environ.clear()")
    done = forked(RUN_AUDIT, tmp_path / "train.py", folder=tmp_path)
    assert "told: 1" in done.stdout
    assert "No backward pass ran." in done.stdout


@pytest.mark.tools
@pytest.mark.parametrize("form", ["networks", "step", "optimizers"])
def test_compiled_scripts(form):
    """Also `fullgraph=True`, which bears no call of the audit's inside the graph. Compilation makes no networks."""
    script = STRANGERS / "compiled.py"
    done = run(script, form, "endless")
    rows = [("d_loss.backward()", "3x", "-", "used"), ("g_loss.backward()", "3x", "used", "wasted")]
    assert table(done, script) == (["G", "D"], rows)
    assert "Stopped after 3 steps" in done.stdout
    assert done.returncode == 0


# What scripts may contain, and how they end.


def test_copied_networks_are_found_and_printed_on_a_terminal_that_has_ascii_alone(write):
    script = write("""
import copy, torch; 输入 = torch.randn(1, 2, 4)
first = torch.nn.TransformerEncoderLayer(4, 1, 4)
second = copy.deepcopy(first)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(9):
    optimizer.zero_grad()
    second(first(输入)).square().sum().backward()
    optimizer.step()
""")
    done = python(RUN_AUDIT, script, PYTHONIOENCODING="ascii")
    assert table(done, script) == (
        ["first", "second"],
        [("second(first(输入)).square().sum().backward()", "3x", "used", "used")],
    )
    assert done.returncode == 0


def test_objects_that_must_not_be_printed_or_asked(write):
    script = write("""
import torch
class Key:
    def __repr__(self): raise RuntimeError("printed")
class Hostile:
    def __getattr__(self, name): raise ZeroDivisionError(name)
net = torch.nn.Linear(2, 1)
things, hostile = {Key(): net, 1: net}, Hostile()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
""")
    done = run(script)
    assert table(done, script) == (["net"], [("net(torch.ones(1, 2)).sum().backward()", "3x", "used")])
    assert done.returncode == 0


def test_what_a_script_drops_is_not_kept_in_memory_and_a_network_used_in_part_gives_way_to_the_part(write):
    script = write("""
import torch, weakref
from torch import nn
dropped = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 9))
rest = weakref.ref(dropped[1])
net = nn.Sequential(dropped[0])
del dropped
assert rest() is None
kept = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 7))
part = nn.Sequential(kept[0])
optimizer = torch.optim.SGD([*net.parameters(), *part.parameters()], 0.1)
for _ in range(5):
    optimizer.zero_grad()
    net(part(torch.ones(1, 2))).sum().backward()
    optimizer.step()
""")
    done = run(script)
    assert table(done, script) == (
        ["net", "part"],
        [("net(part(torch.ones(1, 2))).sum().backward()", "3x", "used", "used")],
    )
    assert not findings(done)
    assert done.returncode == 0


NETWORK = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
"""


def test_what_is_replaced_to_see_networks_and_optimizers_made_is_put_back():
    before = Optimizer.__init__, nn.Module.__setstate__
    with GradientAudit.of_provider(FoundNetworks()):
        assert inspect.signature(Optimizer.__init__) == inspect.signature(before[0])
        assert Optimizer.__init__ is not before[0]
    assert (Optimizer.__init__, nn.Module.__setstate__) == before


def test_a_pass_inside_a_library_has_the_line_of_the_script_and_of_the_library_and_its_version(write):
    script = f"""
import sys; sys.path.append({str(LIBRARIES)!r})
from trainer_library import Accelerator
go = Accelerator().backward
{NETWORK}
go(net(torch.ones(1, 2)).sum())
optimizer.step()
"""
    output = write(script).with_suffix(".json")
    done = run("--output", output, output.with_suffix(".py"))
    assert " go(net(torch.ones(1, 2)).sum())` via trainer_library.py:" in done.stdout
    assert json.loads(output.read_text())["made_with"].endswith(", trainer_library 1.2")


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("import sys; sys.exit(0)", 0, "No backward pass ran.\n\nThe script ended by itself."),
        ("import no_such_module", 1, "The script raised ModuleNotFoundError: No module named 'no_such_module'"),
        (
            f"{NETWORK}\nnet.weight.register_hook(lambda grad: 1 / 0)\nnet(torch.ones(1, 2)).sum().backward()\n",
            1,
            "The script raised ZeroDivisionError: division by zero",
        ),
    ],
)
def test_scripts_that_train_nothing(write, script, status, words):
    done = run(write(script))
    assert words in done.stdout
    assert not findings(done)
    assert "mistake" not in done.stdout
    assert done.returncode == status


@pytest.mark.parametrize(
    ("steps", "ending"),
    [
        ("optimizer.step()", "Stopped after 7 steps of one optimizer; SGD of other had not stepped 3 times."),
        ("", "Stopped after 7 backward passes; no optimizer had stepped."),
    ],
)
def test_an_optimizer_that_never_steps_ends_at_the_limit(write, steps, ending):
    script = f"""{NETWORK}
other = torch.nn.Linear(2, 2)
never = torch.optim.SGD(other.parameters(), 0.1)
while True:
    net(other(torch.ones(1, 2))).sum().backward()
    {steps}
"""
    assert ending in run("--limit", 7, write(script)).stdout


# Options and reports.

QUESTION = """
import torch
G, D = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
G_optimizer, D_optimizer = (torch.optim.SGD(net.parameters(), 0.1) for net in (G, D))
for _ in range(5):
    G_optimizer.zero_grad(), D_optimizer.zero_grad()
    D(G(torch.ones(1, 2))).sum().backward()  # an autoencoder, {say}
    G_optimizer.step(), D_optimizer.step()
"""


def test_strict_makes_questions_fail_and_the_report_is_a_file(write, tmp_path):
    done = run("--output", tmp_path / "report.json", write(QUESTION))
    assert findings(done) == ["meant?"]
    assert done.returncode == 0
    assert f"The report is in {tmp_path / 'report.json'}" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["severity"] == "question"
    assert [network["name"] for network in report["networks"]] == ["G", "D"]
    assert report["findings"][0]["places"][0]["code"] == "D(G(torch.ones(1, 2))).sum().backward()"  # no comment

    done = run("--strict", "--output", tmp_path / "report.md", write(QUESTION))
    assert done.returncode == 1
    assert (tmp_path / "report.md").read_text() in done.stdout.lstrip()


def test_a_reader_that_leaves_early_gets_no_traceback_and_the_report_is_saved(write, tmp_path):
    output, script = tmp_path / "report.json", write(QUESTION)
    with program(RUN_AUDIT, "--output", output, script) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""
        assert process.wait() == 128 + 13  # SIGPIPE
    assert json.loads(output.read_text())["script"] == str(script)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], "there is no file nothing.py"),
        (["--iterations", "0", __file__], "--iterations"),
        (["--iterations", "three", __file__], "--iterations"),
        (["--output", "report.pdf", __file__], "must end in"),
        (["--output", "nowhere/report.md", __file__], "there is no folder"),
    ],
)
def test_bad_input_is_refused_in_one_line_before_the_script_runs(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gradient_audit", *arguments])
    with pytest.raises(SystemExit) as exit:
        command.main()
    assert exit.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_ownerless_parameters_are_told_with_the_lines_that_made_the_network_and_the_optimizer():
    script = LIBRARIES.parent / "bugs" / "optimizer_before_layers.py"
    lines = script.read_text().splitlines()
    places = [f"{script.name}:{lines.index(line) + 1}" for line in lines if line.startswith(("model =", "optimizer ="))]
    assert f"are held by no optimizer. [{', '.join(places)}]" in run(script).stdout


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
    page = (tmp_path / "report.html").read_text()
    assert "    4      model(torch.ones(1, 2)).sum().backward()" in page
    assert f"python -m gradient_audit --output {tmp_path / 'report.html'} {tmp_path / 'loop.ipynb'}" in page
    skipped = re.findall(r"note: loop\.ipynb\[(\d)\]: (.*) is skipped", done.stderr)
    assert skipped == [("1", "%matplotlib inline"), ("1", "!pip install nothing"), ("2", "%%time")]


def test_an_option_of_the_audit_after_the_script_is_the_scripts_and_is_noted(tmp_path):
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    done = run(tmp_path / "train.py", "--strict")
    assert "['--strict']" in done.stdout
    assert "note: --strict goes to the script" in done.stderr


def test_a_script_that_trains_in_a_thread_is_watched_there(tmp_path):
    (tmp_path / "train.py").write_text(
        "import threading, torch\n"
        "network = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(network.parameters(), lr=0.1)\n"
        "def train():\n"
        "    for _ in range(5):\n"
        "        network(torch.ones(3, 2)).sum().backward()\n"
        "        optimizer.step()\n"
        "thread = threading.Thread(target=train)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    done = run(tmp_path / "train.py")
    assert done.returncode == 1
    assert "stepped on gradients older than its own last step" in done.stdout  # no zero_grad()
