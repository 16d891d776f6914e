"""Scripts under the audit, unchanged: those of strangers, what they may contain, and how they end.

What could harm the tests' own process, or needs a clean one, runs in a process that is forked after torch is imported.
One whose children import the script again is started as a user starts it.
"""

import json
import re
import shutil

import pytest
from audited import LOOP, NETWORK, findings, table
from processes import ROOT, RUN_AUDIT, forked, python

pytestmark = pytest.mark.usefixtures("few_objects")


def test_current_folder_own_module_called_common_and_own_arguments_also_of_the_audits_names(write, tmp_path):
    (tmp_path / "common.py").write_text("import torch\nnet = torch.nn.Linear(2, 1)\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rate").write_text("0.1")
    script = write(f"""
import sys, torch
from common import net
print("arguments:", sys.argv[1:], "name:", __name__)
optimizer = torch.optim.SGD(net.parameters(), lr=float(open("rate").read()))
{LOOP}""")
    arguments = "--iterations", 1000, "-x", "--strict"
    done = forked(RUN_AUDIT, "--iterations", 2, script, *arguments, folder=tmp_path / "elsewhere")
    assert "arguments: ['--iterations', '1000', '-x', '--strict'] name: __main__" in done.stdout
    assert "note: to the script: --iterations, --strict;" in done.stderr
    assert table(done, script) == (["net"], [("net(torch.ones(1, 2)).sum().backward()", "2x", "used")])
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    assert done.returncode == 0


TOLD = 'os.environ["GRADIENT_AUDIT"] == str(os.getpid())'


@pytest.mark.tools
def test_the_workers_of_a_loader_that_import_the_script_again_are_not_audited(write):
    script = write(f"""{NETWORK}
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader([torch.ones(2)] * 9, num_workers=2, multiprocessing_context="spawn")
    for batch in loader:
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
""")
    done = python(RUN_AUDIT, script)
    assert table(done, script) == (["net"], [("net(batch).sum().backward()", "3x", "used")])
    assert done.stdout.count("Stopped after") == 1
    assert not done.stderr


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
    assert (done.returncode, done.stderr) == (1, "")

    done = forked(RUN_AUDIT, write(script + LOOP))
    assert "Nothing wrong" in done.stdout
    assert "Stopped after 3 steps" in done.stdout
    assert done.returncode == 0


# How scripts end.


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            f"import os, sys; print({TOLD}); del os.environ['GRADIENT_AUDIT']; sys.exit(0)",
            "True\n\nNo backward pass ran.\n\nThe script ended by itself. Processes that it starts are not audited;",
        ),
        ("import torch\ntorch.func.grad(lambda x: (x * x).sum())(torch.ones(2))\n", "No backward pass ran."),
        ("import no_such_module", "The script raised ModuleNotFoundError: No module named 'no_such_module'"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "The script raised E:"),
        (
            f"{NETWORK}\nnet.weight.register_hook(lambda grad: 1 / 0)\nnet(torch.ones(1, 2)).sum().backward()\n",
            "The script raised ZeroDivisionError: division by zero",
        ),
        ("import sys; sys.exit(2)", "\nThe script exited with status 2. Processes that it starts are not audited;"),
        ("import sys; sys.exit('no data')", "\nThe script exited with a message: no data. Processes that it starts"),
    ],
)
def test_scripts_that_train_nothing(write, command, script, words):
    done = command(write(script))
    assert words in done.stdout
    assert not findings(done)
    assert "mistake" not in done.stdout
    assert done.returncode == 1  # a check that watched nothing must not pass
    assert ("Traceback" in done.stderr) == ("raised" in words)  # as Python shows the end of a script


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_of_a_launcher_nothing_is_seen_and_the_script_itself_is_to_be_audited(tmp_path, command, launcher):
    (tmp_path / launcher).write_text("")  # what it starts are other processes
    done = command(tmp_path / launcher, "--nproc-per-node", "2", "train.py")
    assert done.stdout.endswith("Audit the script itself: python -m gradient_audit train.py\n")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("loop", "catch", "counts"),
    [
        ("while True", "except:", range(2, 6)),
        ("for _ in range(4)", "except:", range(2, 6)),
        ("while True", "except Exception:", [0]),  # what stops the script is none
    ],
)
def test_a_script_that_catches_what_stops_it_is_stopped_again_and_its_findings_are_of_before(
    write, loop, catch, counts
):
    script = f"""{NETWORK}
import torch.nn.functional as F
{loop}:
    for part in (optimizer.zero_grad, lambda: net(torch.ones(1, 2)).sum().backward(), optimizer.step):
        try:
            part()
        {catch}
            print("caught")
if undefined: print()
"""
    done = forked(RUN_AUDIT, "--iterations", 2, write(script))
    assert done.stdout.count("caught") in counts
    assert "Nothing wrong" in done.stdout
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        ("optimizer.step()", "Stopped after 7 steps of one optimizer; another had not stepped 3 times."),
        ("", "Stopped after 7 backward passes; no optimizer of `torch.optim` was seen to step."),
    ],
)
def test_an_optimizer_that_never_steps_ends_at_the_limit(write, command, step, ending):
    script = f"""{NETWORK}
other = torch.nn.Linear(2, 2)
never = torch.optim.SGD(other.parameters(), 0.1)
while True:
    net(other(torch.ones(1, 2))).sum().backward()
    {step}
"""
    assert ending in command("--limit", 7, write(script)).stdout


REPLACED = "The script ended in os.{}(): the program that takes its place is not audited.\n"
HOSTILE = "import builtins, os, warnings\nbuiltins.print, os.getpid = None, int\nwarnings.simplefilter('error')\n"
HOSTILE += "warnings.filterwarnings('ignore', 'Implicitly cleaning up')\n"  # a folder of torch 2.6 itself


@pytest.mark.parametrize(
    ("loop", "end", "told"),
    [
        ("net(torch.ones(1, 2)).sum().backward()\n", "os._exit(0)", "The script ended by itself.\n"),
        (LOOP, "os._exit(status=3)", "The script exited with status 3.\n"),
        (LOOP, "os.execl('/bin/echo', 'echo', 'training')", REPLACED.format("execv")),
        (LOOP, "os.execvpe('echo', ['echo'], os.environ)", REPLACED.format("execve")),
    ],
)
def test_a_script_that_leaves_without_an_end_gets_its_report(write, loop, end, told):
    done = forked(RUN_AUDIT, "--iterations", 99, write(f"{NETWORK}{loop}{HOSTILE}{end}\n"))
    assert "| `train.py:" in done.stdout
    assert ("Nothing wrong" in done.stdout) == (loop == LOOP)
    assert done.stdout.endswith(told)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_a_script_does_with_its_errors_it_does_under_the_audit(write, tmp_path):
    script = write(f"""
import sys
from pathlib import Path
{NETWORK}
sys.excepthook = lambda kind, error, trace: Path("crash.txt").write_text(f"{{kind.__name__}}: {{error}}")
{LOOP}
raise ValueError("wrong")
""")
    done = forked(RUN_AUDIT, "--iterations", 9, script, folder=tmp_path)
    assert "The script raised ValueError: wrong" in done.stdout and not done.stderr
    assert (tmp_path / "crash.txt").read_text() == "ValueError: wrong"
    assert done.returncode == 1


def test_the_report_needs_nothing_that_the_script_can_replace(write):
    done = python(RUN_AUDIT, write(f"{HOSTILE}{NETWORK}{LOOP}"))
    assert "Nothing wrong" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")  # and no ResourceWarning


# What is no file of Python's.


def test_a_module_a_folder_and_an_archive_run_as_python_runs_them_and_no_folder_of_this_repository_is_in_the_way(
    tmp_path,
):
    """As `python -m scripts.train`, in a folder whose `scripts` has no `__init__.py`; this repository's has one."""
    module = "import sys\nfrom .common.net import width\nprint(__name__, __spec__.name, sys.argv)\n"
    files = {"train.py": module + NETWORK + LOOP, "common/net.py": "width = 2"}
    files["__main__.py"] = f"from common.net import width\n{NETWORK}{LOOP}"
    (tmp_path / "scripts" / "common").mkdir(parents=True)
    for name, code in files.items():
        (tmp_path / "scripts" / name).write_text(code)
    shutil.make_archive(tmp_path / "packed", "zip", tmp_path / "scripts")
    module = "-m", "scripts.train", "--lim", "3"
    done = forked(RUN_AUDIT, "--iterations", 2, *module, folder=tmp_path, PYTHONPATH=str(ROOT))
    assert f"__main__ scripts.train ['{tmp_path / 'scripts' / 'train.py'}', '--lim', '3']" in done.stdout
    assert "Stopped after 2 steps of every optimizer." in done.stdout
    for script in (tmp_path / "scripts", tmp_path / "packed.zip"):
        assert "Nothing wrong" in forked(RUN_AUDIT, script, folder=tmp_path).stdout
    done = forked(RUN_AUDIT, "-m", "no_such.train", folder=tmp_path)
    assert done.stderr == "error: -m: there is no module 'no_such.train' here; run this in the folder that holds it\n"
    assert done.returncode == 2


CELLS = [
    "%matplotlib inline\nimport torch\n!pip install nothing\nfiles = !ls\n?torch\ntorch.nn??\ndisplay(files, 7)\n",
    "%%bash\nnot python\n",
    "import asyncio\nwords = '''\n%kept'''\nawait asyncio.sleep(0)\nprint(words)\n",
    """%%time
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
""",
]


def test_a_notebook_is_its_code_cells_and_its_places_name_them(tmp_path, command):
    cells = [{"cell_type": "markdown", "source": ["# A loop"]}]
    cells += [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in CELLS]
    (tmp_path / "loop.ipynb").write_text(json.dumps({"cells": cells}))
    done = command("--output", tmp_path / "report.html", tmp_path / "loop.ipynb")
    assert "**stale** (error): an optimizer of model stepped again on gradients" in done.stdout
    assert "[loop.ipynb[4]:5, loop.ipynb[4]:6]" in done.stdout
    assert "    5      model(torch.ones(1, 2)).sum().backward()" in (tmp_path / "report.html").read_text()
    skipped = re.findall(r"note: loop\.ipynb\[(\d)\]: (.*) is skipped", done.stderr)
    magics = "%matplotlib inline", "!pip install nothing", "files = !ls", "?torch", "torch.nn??"
    assert skipped == [*(("1", magic) for magic in magics), ("2", "%%bash"), ("4", "%%time")]
    assert done.stdout.startswith("[]\n7\n\n%kept\n")


@pytest.mark.parametrize("text", ["{}", "import torch", '{"worksheets": []}'])
def test_a_file_that_is_no_notebook_is_refused_in_a_line(tmp_path, command, text):
    (tmp_path / "old.ipynb").write_text(text)
    done = command(tmp_path / "old.ipynb")
    assert "old.ipynb: is no notebook of version 4; save it again in Jupyter" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")
