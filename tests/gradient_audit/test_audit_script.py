"""Scripts under the audit, unchanged: those of strangers, and what they may contain.

What could harm the tests' own process, or needs a clean one, runs in a process that is forked after torch is imported.
One whose children import the script again is started as a user starts it.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import make_images
from processes import PATIENCE, ROOT, RUN_AUDIT, forked, program, python

from gradient_audit.__main__ import main

pytestmark = pytest.mark.usefixtures("few_objects")

MUSEUM = Path(__file__).parent / "museum"
LIBRARIES = MUSEUM / "site-packages"


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that does here what `forked(RUN_AUDIT, ...)` does in a process of its own."""

    def run(*arguments):
        monkeypatch.setenv("GRADIENT_AUDIT", "")
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        monkeypatch.setattr(sys, "argv", ["gradient_audit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdout", sys.stdout)
        status = main()
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=status, stdout=out, stderr=err)

    return run


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

TRAINER = """
import copy, torch
class Trainer:
    def __init__(self):
        self.G, self.nets = torch.nn.Linear(2, 2), {"D": torch.nn.Linear(2, 1)}
        self.ema = copy.deepcopy(self.G)
        self.optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in (self.G, self.nets["D"])]
    def train(self):
        while True:
            try:
                for optimizer in self.optimizers:
                    optimizer.zero_grad(set_to_none=False)
                self.nets["D"](self.G(torch.ones(1, 2))).sum().backward()
                self.optimizers[0].step()
                self.nets["D"].zero_grad()
                self.nets["D"](torch.ones(1, 2)).sum().backward()
                self.optimizers[1].step()
            except Exception as error:
                print("skipping a batch:", error)
Trainer().train()
"""


def test_networks_have_the_names_by_which_a_trainer_knows_them_and_it_cannot_go_on_after_the_end(write, run):
    script = write(TRAINER)
    done = run(script)
    assert table(done, script) == (
        ["self.G", "self.nets['D']"],  # a copy is no column
        [
            ('self.nets["D"](self.G(torch.ones(1, 2))).sum().backward()', "3x", "used", "wasted"),
            ('self.nets["D"](torch.ones(1, 2)).sum().backward()', "3x", "-", "used"),
        ],
    )
    assert findings(done) == ["wasted"]
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert "skipping a batch" not in done.stdout  # an `except Exception` does not catch what stops the script
    assert not done.stderr
    assert done.returncode == 0  # waste is not wrong


def test_current_folder_own_module_called_common_and_own_arguments_also_of_the_audits_names(write, tmp_path):
    (tmp_path / "common.py").write_text("import torch\nnet = torch.nn.Linear(3, 1)\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rate").write_text("0.1")
    script = write("""
import sys, torch
from common import net
print("arguments:", sys.argv[1:], "name:", __name__)
optimizer = torch.optim.SGD(net.parameters(), lr=float(open("rate").read()))
for _ in range(9):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()
""")
    arguments = "--iterations", 1000, "-x", "--strict"
    done = forked(RUN_AUDIT, "--iterations", 2, script, *arguments, folder=tmp_path / "elsewhere")
    assert "arguments: ['--iterations', '1000', '-x', '--strict'] name: __main__" in done.stdout
    assert "note: --iterations, --strict goes to the script" in done.stderr
    assert table(done, script) == (["net"], [("net(torch.randn(5, 3)).square().mean().backward()", "2x", "used")])
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("script", ["gan_detach.py --model mlp --device cpu --runs-dir runs", "gan_standalone.py"])
def test_an_audited_training_script_leaves_its_run(script, tmp_path):
    (tmp_path / "scratch").mkdir()
    make_images(tmp_path / "images", 4, 28)
    name, *options = f"{script} --steps 5 --dataset images --image-size 28 --batch-size 4".split()
    done = forked(RUN_AUDIT, ROOT / "scripts" / name, *options, folder=tmp_path, TMPDIR=str(tmp_path / "scratch"))
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert table(done, ROOT / "scripts" / name)[0] == ["generator", "discriminator"]  # as main calls them
    assert done.returncode == 0
    assert [path.name for path in (*tmp_path.glob("runs"), *tmp_path.glob("scratch/tmp*"))] == ["runs"]


# What scripts may contain, and how they end.

AWKWARD = {
    "copied networks, and letters that the terminal lacks": (
        ["first", "second"],
        "second(first(输入))",
        """
import copy, sys; sys.stdout.reconfigure(encoding="ascii")
输入 = torch.randn(1, 2, 4)
first = torch.nn.TransformerEncoderLayer(4, 1, 4)
second = copy.deepcopy(first)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
""",
    ),
    "objects that must not be printed or asked, modules that compare element by element, own parameters()": (
        ["net"],
        "net(torch.ones(1, 2))",
        """
class Key:
    def __repr__(self): raise RuntimeError("printed")
class Hostile:
    def __getattr__(self, name): raise ZeroDivisionError(name)
class Elementwise(torch.nn.Linear):
    def __eq__(self, other): return self.weight == other.weight
    __hash__ = torch.nn.Module.__hash__
class Own(torch.nn.Sequential):
    def __bool__(self): raise RuntimeError("no truth value")
    def parameters(self): return [parameter for layer in self for parameter in layer.parameters()]
net = Own(Elementwise(2, 2), Elementwise(2, 2))
things, hostile = {Key(): net, 1: net}, Hostile()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
""",
    ),
    "what is dropped is not kept in memory, and a network used in part gives way to the part": (
        ["net", "part"],
        "net(part(torch.ones(1, 2)))",
        """
import weakref
from torch import nn
dropped = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 9))
rest = weakref.ref(dropped[1])
net = nn.Sequential(dropped[0])
del dropped
assert rest() is None
kept = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 7))
part = nn.Sequential(kept[0])
optimizer = torch.optim.SGD([*net.parameters(), *part.parameters()], 0.1)
""",
    ),
}


@pytest.mark.parametrize(("columns", "call", "setup"), AWKWARD.values(), ids=AWKWARD)
def test_awkward_scripts_are_audited_like_others(write, run, columns, call, setup):
    line = f"{call}.square().sum().backward()"
    loop = f"for _ in range(5):\n    optimizer.zero_grad()\n    {line}\n    optimizer.step()\n"
    script = write(f"import torch\n{setup}{loop}")
    done = forked(RUN_AUDIT, script) if "ascii" in setup else run(script)
    assert table(done, script) == (columns, [(line, "3x", *["used"] * len(columns))])
    assert not findings(done)
    assert done.returncode == 0


NETWORK = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
"""
TOLD = 'os.environ["GRADIENT_AUDIT"] == str(os.getpid())'


@pytest.mark.tools
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_the_workers_of_a_loader_are_not_audited_also_where_they_import_the_script_again(write, start_method):
    script = write(f"""{NETWORK}
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader([torch.ones(2)] * 9, num_workers=2, multiprocessing_context={start_method!r})
    for batch in loader:
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
""")
    done = (forked if start_method == "fork" else python)(RUN_AUDIT, script)
    assert table(done, script) == (["net"], [("net(batch).sum().backward()", "3x", "used")])
    assert done.stdout.count("Stopped after") == 1
    assert not done.stderr


THREAD = """
import threading
def train():
    for _ in range(5):
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()
thread = threading.Thread(target=train)
thread.start(), thread.join()
"""
LIBRARY = f"""
import sys; sys.path.append({str(LIBRARIES)!r})
from trainer_library import Accelerator
go = Accelerator().backward
go(net(torch.ones(1, 2)).sum())
optimizer.step()
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # what stops the script
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (THREAD, "stepped again on gradients that it had already used"),  # no zero_grad()
        (LIBRARY, " go(net(torch.ones(1, 2)).sum())` via trainer_library.py:"),
    ],
)
def test_a_pass_in_a_thread_or_inside_a_library_is_watched_and_has_the_line_of_both(write, run, script, words):
    assert words in run(write(NETWORK + script)).stdout


TASK = """
import asyncio
async def train():
    for _ in range(5):
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()
async def main():
    task = asyncio.create_task(train())
    await asyncio.sleep(1)
asyncio.run(main())
"""


@pytest.mark.parametrize("script", [THREAD, TASK])
def test_what_stops_a_thread_or_a_task_of_the_script_prints_no_traceback_of_the_audits_own(write, script):
    done = forked(RUN_AUDIT, write(NETWORK + script))
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        (
            f"import os, sys; print({TOLD}); del os.environ['GRADIENT_AUDIT']; sys.exit(0)",
            1,  # a check that watched nothing must not pass
            "True\n\nNo backward pass ran.\n\nThe script ended by itself. Processes that it starts are not audited;",
        ),
        ("import torch\ntorch.func.grad(lambda x: (x * x).sum())(torch.ones(2))\n", 1, "No backward pass ran."),
        ("import no_such_module", 1, "The script raised ModuleNotFoundError: No module named 'no_such_module'"),
        (
            f"{NETWORK}\nnet.weight.register_hook(lambda grad: 1 / 0)\nnet(torch.ones(1, 2)).sum().backward()\n",
            1,
            "The script raised ZeroDivisionError: division by zero",
        ),
        ("import sys; sys.exit(2)", 1, "\nThe script exited with status 2. Processes that it starts are not audited;"),
        ("import sys; sys.exit('no data')", 1, "\nThe script exited with a message: no data. Processes that it starts"),
    ],
)
def test_scripts_that_train_nothing(write, run, script, status, words):
    done = run(write(script))
    assert words in done.stdout
    assert not findings(done)
    assert "mistake" not in done.stdout
    assert done.returncode == status
    assert ("Traceback" in done.stderr) == ("raised" in words)  # as Python shows the end of a script


LOOP = """
for step in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_of_a_launcher_nothing_is_seen_and_the_script_itself_is_to_be_audited(tmp_path, run, launcher):
    (tmp_path / launcher).write_text("")  # what it starts are other processes
    done = run(tmp_path / launcher, "--nproc-per-node", "2", "train.py")
    assert done.stdout.endswith("Audit the script itself: python -m gradient_audit train.py\n")
    assert done.returncode == 1


def test_forked_processes_train_on_without_the_audit_and_the_parents_report_is_about_the_parent(write):
    script = f"""{NETWORK}
import multiprocessing, os, sys
def train(name):
    {LOOP.replace(chr(10), chr(10) + "    ")}
    print(name, "trained", step + 1, "times", torch.autograd.backward.__module__, {TOLD}, flush=True)
child = multiprocessing.get_context("fork").Process(target=train, args=("one",))
child.start(), child.join()
if not (number := os.fork()):
    train("two")  # and goes on to the end of the script
    sys.exit(7)
print("they ended with", child.exitcode, os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)
"""
    done = forked(RUN_AUDIT, write(script))
    assert "one trained 5 times torch.autograd False\n" in done.stdout
    assert "two trained 5 times torch.autograd False\n" in done.stdout
    assert "they ended with 0 7" in done.stdout
    assert done.stdout.count("No backward pass ran.") == done.stdout.count("The script ended by itself.") == 1
    assert not done.stderr
    assert done.returncode == 1

    done = forked(RUN_AUDIT, write(script + LOOP))
    assert "Nothing wrong" in done.stdout
    assert "Stopped after 3 steps" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("loop", ["while True", "for _ in range(4)"])
def test_a_script_that_catches_what_stops_it_is_stopped_again_and_its_findings_are_of_before(write, run, loop):
    script = f"""{NETWORK}
import torch.nn.functional as F
{loop}:
    for part in (optimizer.zero_grad, lambda: net(torch.ones(1, 2)).sum().backward(), optimizer.step):
        try:
            part()
        except:
            print("caught")
if undefined: print()
"""
    done = (forked if "while" in loop else run)(*[RUN_AUDIT] * ("while" in loop), "--iterations", 2, write(script))
    assert 2 <= done.stdout.count("caught") <= 5
    assert "Nothing wrong" in done.stdout
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    assert done.returncode == 0


NEVER = {
    "optimizer.step()": "Stopped after 7 steps of one optimizer; another had not stepped 3 times.",
    "": "Stopped after 7 backward passes; no optimizer of `torch.optim` had stepped.",
}


@pytest.mark.parametrize(("steps", "ending"), NEVER.items())
def test_an_optimizer_that_never_steps_ends_at_the_limit(write, run, steps, ending):
    script = f"""{NETWORK}
other = torch.nn.Linear(2, 2)
never = torch.optim.SGD(other.parameters(), 0.1)
while True:
    net(other(torch.ones(1, 2))).sum().backward()
    {steps}
"""
    assert ending in run("--limit", 7, write(script)).stdout


# Reports.

QUESTION = """
import torch
G, D = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
G_optimizer, D_optimizer = (torch.optim.SGD(net.parameters(), 0.1) for net in (G, D))
for _ in range(5):
    D_optimizer.zero_grad()
    D(torch.ones(1, 2)).sum().backward()
    D_optimizer.step()
    G_optimizer.zero_grad(), D_optimizer.zero_grad()
    D(G(torch.ones(1, 2))).sum().backward()  # an autoencoder, {say}
    D_optimizer.step(), G_optimizer.step()
"""


def test_strict_makes_questions_fail_but_not_waste_and_the_report_is_a_file(write, run, tmp_path):
    done = run("--output", tmp_path / "report.html", write(QUESTION))
    assert findings(done) == ["meant?"]
    assert done.returncode == 0
    assert f"The report is in {tmp_path / 'report.html'}" in done.stdout
    report = (tmp_path / "report.html").read_text()
    assert '<div class="verdict question">' in report
    assert '<th class="net">G<br><small>6</small></th><th class="net">D<br><small>3</small></th>' in report
    assert "<code>D(G(torch.ones(1, 2))).sum().backward()</code>" in report  # no comment

    done = run("--strict", "--output", tmp_path / "report.md", write(QUESTION))
    assert done.returncode == 1
    assert (tmp_path / "report.md").read_text() in done.stdout.lstrip()

    done = run("--strict", MUSEUM / "clean" / "mean_score.py")
    assert findings(done) == ["graph"]  # waste
    assert done.returncode == 0


def test_a_reader_that_leaves_early_gets_no_traceback_and_the_report_is_saved(write, tmp_path):
    output, script = tmp_path / "report.html", write(QUESTION)
    with program(RUN_AUDIT, "--output", output, script, env=os.environ | {"PYTHONUNBUFFERED": ""}) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""
        assert process.wait() == 128 + 13  # SIGPIPE
    assert f"Gradient audit of {script.name}" in output.read_text()


CATCHES_ALL = f"""{NETWORK}
while True:
    try:
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    except:
        pass
"""


def test_a_script_that_catches_everything_ends_also_where_its_report_cannot_be_printed(write, tmp_path):
    with program(RUN_AUDIT, "--output", tmp_path / "report.md", write(CATCHES_ALL)) as process:
        process.stdout.close()
        assert process.wait(PATIENCE) == 1
    assert "Stopped after 3 steps" in (tmp_path / "report.md").read_text()


def test_a_report_that_cannot_be_written_is_printed_with_a_line_that_says_so(write, run, tmp_path):
    output, script = tmp_path / "report.md", f"{NETWORK}{LOOP}\nimport os; os.mkdir('{tmp_path}/report.md')\n"
    done = run("--iterations", 9, "--output", output, write(script))
    assert "Nothing wrong, nothing wasted." in done.stdout
    assert f"The report could not be written to {output}: Is a directory" in done.stdout
    assert done.returncode == 1
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "report.md"}


def test_a_report_about_a_file_whose_name_is_no_text_is_written(tmp_path):
    script = tmp_path / "caf\udce9.py"
    script.write_text(NETWORK + LOOP)
    for output in (tmp_path / "report.html", tmp_path / "report.md"):
        assert forked(RUN_AUDIT, "--output", output, script).returncode == 0
        assert "caf\\udce9.py" in output.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_stdout_that_cannot_be_written_is_told_in_a_line(write):
    for command in (["--list"], [write(NETWORK + LOOP)]):
        with Path("/dev/full").open("w") as full, program(RUN_AUDIT, *command, stdout=full) as process:
            assert process.stderr.read() == "error: stdout cannot be written: No space left on device\n"
            assert process.wait() == 1


def test_a_script_that_contains_an_audit_is_audited_as_a_whole_and_told_so_in_a_line(write, run):
    script = f"""{NETWORK}
from gradient_audit import GradientAudit
with GradientAudit(net=net) as audit:
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
audit.check()
print(audit)
"""
    done = run(write(script))
    (note,) = done.stderr.splitlines()
    assert "train.py:7 with GradientAudit(net=net) as audit:" in note
    assert done.stdout.startswith("Not watched: the audit of the whole script takes the place of this one.")
    assert findings(done) == ["stale"]
    assert done.returncode == 1


CELLS = [
    "%matplotlib inline\nimport torch\n!pip install nothing\nfiles = !ls\n?torch\ntorch.nn??\ndisplay(files, 7)\n",
    "%%time\nnot python\n",
    """model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
""",
]
AWAITING = """import asyncio
words = '''
%kept'''
await asyncio.sleep(0)
print(words)
"""


def test_a_notebook_is_its_code_cells_and_its_places_name_them(tmp_path, run):
    cells = [{"cell_type": "markdown", "source": ["# A loop"]}]
    cells += [
        {"cell_type": "code", "source": source.splitlines(keepends=True)} for source in [*CELLS[:2], AWAITING, CELLS[2]]
    ]
    (tmp_path / "loop.ipynb").write_text(json.dumps({"cells": cells}))
    done = run("--output", tmp_path / "report.html", tmp_path / "loop.ipynb")
    assert "**stale** (error): an optimizer of model stepped again on gradients" in done.stdout
    assert "[loop.ipynb[4]:4, loop.ipynb[4]:5]" in done.stdout
    page = (tmp_path / "report.html").read_text()
    assert "    4      model(torch.ones(1, 2)).sum().backward()" in page
    skipped = re.findall(r"note: loop\.ipynb\[(\d)\]: (.*) is skipped", done.stderr)
    magics = "%matplotlib inline", "!pip install nothing", "files = !ls", "?torch", "torch.nn??"
    assert skipped == [*(("1", magic) for magic in magics), ("2", "%%time")]
    assert done.stdout.startswith("[]\n7\n\n%kept\n")


def test_a_module_a_folder_and_an_archive_run_as_python_runs_them_and_no_folder_of_this_repository_is_in_the_way(
    tmp_path,
):
    """As `python -m scripts.train`, in a folder whose `scripts` has no `__init__.py`; this repository's has one."""
    for name, code in {"scripts/train.py": "", "scripts/__main__.py": "", "scripts/common/net.py": "width = 2"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(code)
    (tmp_path / "scripts" / "train.py").write_text(
        "import sys\nfrom .common.net import width\nprint(__name__, __spec__.name, sys.argv)\n" + NETWORK + LOOP
    )
    (tmp_path / "scripts" / "__main__.py").write_text("from common.net import width\n" + NETWORK + LOOP)
    shutil.make_archive(tmp_path / "packed", "zip", tmp_path / "scripts")
    done = forked(
        RUN_AUDIT, "--iterations", 2, "-m", "scripts.train", "--lim", "3", folder=tmp_path, PYTHONPATH=str(ROOT)
    )
    assert f"__main__ scripts.train ['{tmp_path / 'scripts' / 'train.py'}', '--lim', '3']" in done.stdout
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    for script in (tmp_path / "scripts", tmp_path / "packed.zip"):
        assert "Nothing wrong" in forked(RUN_AUDIT, script, folder=tmp_path).stdout
    done = forked(RUN_AUDIT, "-m", "no_such.train", folder=tmp_path)
    assert done.stderr == "error: -m: there is no module 'no_such.train' here; run this in the folder that holds it\n"
    assert done.returncode == 2


def test_a_script_that_leaves_by_os_exit_and_a_file_that_is_no_notebook_are_no_silent_end(tmp_path):
    (tmp_path / "leaves.py").write_text(f"{NETWORK}net(torch.ones(1, 2)).sum().backward()\nimport os\nos._exit(0)\n")
    done = forked(RUN_AUDIT, tmp_path / "leaves.py")
    assert "| `leaves.py:" in done.stdout and done.stdout.rstrip().endswith("The script ended by itself.")
    assert done.returncode == 1
    replaced = "The script ended in os.{}(): the program that takes its place is not audited.\n"
    hostile = "import builtins, os, warnings\nbuiltins.print, os.getpid = None, int\nwarnings.simplefilter('error')\n"
    for end, told in (
        ("os._exit(status=3)", "The script exited with status 3.\n"),
        ("os.execl('/bin/echo', 'echo', 'training')", replaced.format("execv")),
        ("os.execvpe('echo', ['echo'], os.environ)", replaced.format("execve")),
    ):
        (tmp_path / "leaves.py").write_text(f"{NETWORK}{LOOP}{hostile}{end}\n")
        done = forked(RUN_AUDIT, "--iterations", 99, tmp_path / "leaves.py")
        assert "Nothing wrong" in done.stdout and done.stdout.endswith(told)
        assert (done.returncode, done.stderr) == (1, "")
    (tmp_path / "leaves.py").write_text(f"{hostile}{NETWORK}{LOOP}")
    done = python(RUN_AUDIT, tmp_path / "leaves.py")
    assert "Nothing wrong" in done.stdout and (done.returncode, done.stderr) == (0, "")  # and no ResourceWarning
    for text in ("{}", "import torch", '{"worksheets": []}'):
        (tmp_path / "old.ipynb").write_text(text)
        done = forked(RUN_AUDIT, tmp_path / "old.ipynb")
        assert "old.ipynb: is no notebook of version 4; save it again in Jupyter" in done.stdout
        assert (done.returncode, done.stderr) == (1, "")


STEPS = """
import asyncio, io, sys
import torch
from torch import nn
class Tee:
    def write(self, text): pass
class Silent(Exception):
    def __str__(self): raise ValueError
net = nn.Linear(2, 1, device={device!r})
optimizer = torch.optim.SGD(net.parameters(), 0.1)
async def train():
    for _ in range(4):
        optimizer.zero_grad()
        net(torch.randn(3, 2, device={device!r})).square().mean().backward()
        optimizer.step()
{first}
{then}
"""


@pytest.mark.parametrize(
    ("device", "first", "then", "said"),
    [
        ("cpu", "sys.stdout = Tee()", "asyncio.run(train())", "Nothing wrong, nothing wasted."),
        ("cpu", "sys.stdout.close()", "asyncio.run(train())", "Nothing wrong, nothing wasted."),
        ("meta", "", "asyncio.run(train())", "Nothing wrong, nothing wasted."),
        ("cpu", "", "raise Silent", "The script raised Silent:"),
    ],
)
def test_the_report_comes_whatever_a_script_does_to_stdout_and_wherever_it_trains(
    write, run, device, first, then, said
):
    script = write(STEPS.format(device=device, first=first, then=then))
    assert said in (forked(RUN_AUDIT, script) if "close" in first else run(script)).stdout
