"""The report of a script: on the screen, in a file, and where either cannot be written."""

import os
import signal
from pathlib import Path

import pytest
from audited import LOOP, NETWORK, findings
from processes import PATIENCE, RUN_AUDIT, forked, program

pytestmark = pytest.mark.usefixtures("few_objects")

CLEAN = Path(__file__).parent / "museum" / "clean"
QUESTION = (CLEAN / "head_alone_then_with_encoder.py").read_text()
QUESTION = QUESTION.replace("    loss.backward()\n", "    loss.backward()  # a comment, {say}\n")
CATCHES_ALL = f"""{NETWORK}
while True:
    try:
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    except:
        pass
"""


def test_strict_makes_questions_fail_but_not_waste_and_the_report_is_a_file(write, command, tmp_path):
    done = command("--output", tmp_path / "report.html", write(QUESTION))
    assert findings(done) == ["meant?"]
    assert done.returncode == 0
    assert f"The report is in {tmp_path / 'report.html'}" in done.stdout
    report = (tmp_path / "report.html").read_text()
    assert '<div class="verdict question">' in report
    assert '<th class="net">encoder<br><small>30</small></th><th class="net">head<br><small>21</small></th>' in report
    assert "<code>loss.backward()</code>" in report  # no comment

    done = command("--strict", "--output", tmp_path / "report.md", write(QUESTION))
    assert done.returncode == 1
    assert (tmp_path / "report.md").read_text() in done.stdout.lstrip()

    done = command("--strict", CLEAN / "mean_score.py")
    assert findings(done) == ["graph"]  # waste
    assert done.returncode == 0


def test_the_verdict_says_what_a_call_of_torch_compile_hides(write, command):
    done = command("--strict", write(f"{NETWORK}quick = torch.compile(torch.square)\n{LOOP}"))
    assert done.returncode == 0
    assert "Nothing wrong, nothing wasted. After `torch.compile` (train.py:" in done.stdout
    assert "operations, terms and `zero_grad()` were not watched: leave it out to find more." in done.stdout


@pytest.mark.parametrize(("text", "status"), [(QUESTION, 128 + 13), (CATCHES_ALL, 1)])  # 13: SIGPIPE
def test_a_reader_that_leaves_early_gets_no_traceback_and_the_report_is_saved(write, tmp_path, text, status):
    output, script = tmp_path / "report.html", write(text)
    with program(RUN_AUDIT, "--output", output, script, env=os.environ | {"PYTHONUNBUFFERED": ""}) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE) == status
    assert f"Gradient audit of {script.name}" in output.read_text()


def test_a_report_that_cannot_be_written_is_printed_with_a_line_that_says_so(write, command, tmp_path):
    output, script = tmp_path / "report.md", f"{NETWORK}{LOOP}\nimport os; os.mkdir('{tmp_path}/report.md')\n"
    done = command("--iterations", 9, "--output", output, write(script))
    assert "Nothing wrong, nothing wasted." in done.stdout
    assert f"The report could not be written to {output}: Is a directory" in done.stdout
    assert done.returncode == 1
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "report.md"}


@pytest.mark.parametrize("report", ["report.html", "report.md"])
def test_a_report_about_a_file_whose_name_is_no_text_is_written(tmp_path, report):
    (tmp_path / "caf\udce9.py").write_text(NETWORK + LOOP)
    assert forked(RUN_AUDIT, "--output", tmp_path / report, tmp_path / "caf\udce9.py").returncode == 0
    assert "caf\\udce9.py" in (tmp_path / report).read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_stdout_that_cannot_be_written_is_told_in_a_line(write):
    for command in (["--list"], [write(NETWORK + LOOP)]):
        with Path("/dev/full").open("w") as full, program(RUN_AUDIT, *command, stdout=full) as process:
            assert process.stderr.read() == "error: stdout cannot be written: No space left on device\n"
            assert process.wait() == 1


@pytest.mark.parametrize(
    "setup",
    [
        "class Tee:\n    def write(self, text): pass\nimport sys\nsys.stdout = Tee()",
        "import sys\nsys.stdout.close()",
        "import torch\ntorch.set_default_device('meta')",
    ],
)
def test_the_report_comes_whatever_a_script_does_to_stdout_and_wherever_it_trains(write, setup):
    assert "Nothing wrong, nothing wasted." in forked(RUN_AUDIT, write(setup + NETWORK + LOOP)).stdout


def test_a_script_that_contains_an_audit_is_audited_as_a_whole_and_told_so_in_a_line(write, command):
    script = f"""{NETWORK}
from gradient_audit import GradientAudit
with GradientAudit(net=net) as audit:
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
audit.check()
print(audit)
"""
    done = command(write(script))
    (note,) = done.stderr.splitlines()
    assert "train.py:7 with GradientAudit(net=net) as audit:" in note
    assert done.stdout.startswith("Not watched: the audit of the whole script takes the place of this one.")
    assert findings(done) == ["stale"]
    assert done.returncode == 1


def test_a_report_is_printed_where_the_script_is_terminated(write):
    done = forked(RUN_AUDIT, write(f"{NETWORK}{LOOP}    __import__('os').kill(__import__('os').getpid(), 15)\n"))
    assert "The script raised KeyboardInterrupt" in done.stdout
    assert (done.returncode, "| backward pass" in done.stdout) == (1, True)


def test_the_audit_of_a_script_leaves_no_handler_of_a_signal(write, command):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    command(write(f"{NETWORK}{LOOP}"))
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
