"""The audit on the museum: published bugs, each named with its line, and right loops without a false alarm.

A file says what the audit finds in it: `# expects: error mixed at "g_loss.backward()"` is the severity, the kind, and a
part of the line that the finding names first. `# expects: nothing` is a right loop. `# expects: mistake second-backward
at "..."` is an error that PyTorch raises in that line, and the mistake that explains it. `# networks: encoder` are the
columns of the table, where they are in question.
"""

import gc
import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import path_of
from processes import PATIENCE, ended, fork

from gradient_audit.mistakes import names

MUSEUM = Path(__file__).parent / "museum"
BUGS, CLEAN = sorted(MUSEUM.glob("bugs/*.py")), sorted(MUSEUM.glob("clean/*.py"))
EXPECTED = re.compile(r'# expects: (?:(error|question|waste|mistake) (\S+?)(?: at "(.+)")?|nothing)')
SHOWN = re.compile(r"^- \*\*(\S+)\*\* \((\w+)\):(?:.* \[(\w+\.py:\d+)|)", re.MULTILINE)
each = pytest.mark.parametrize("script", [*BUGS, *CLEAN], ids=lambda script: script.stem)


def expected(script):
    """The lines `# expects:` of a file, as (severity, kind, "file:line" or "")."""
    text = script.read_text()
    for line in re.findall("^# expects:.*", text, re.MULTILINE):
        severity, kind, code = EXPECTED.fullmatch(line).groups()
        if severity:
            places = [n for n, line in enumerate(text.splitlines(), 1) if code and code in line and line[0] != "#"]
            assert len(places) == bool(code), f"{script.name}: {code} is in lines {places}"
            yield severity, kind, f"{script.name}:{places[0]}" if code else ""


def found(done):
    """The findings that were printed, in the same form; a mistake has the line of the pass that raised."""
    shown = {(severity, kind, place) for kind, severity, place in SHOWN.findall(done.stdout)}
    for name in re.findall("This is the mistake `(.+?)`", done.stdout):
        raised = re.findall(r"^\| `(\S+) .*` raised +\|", done.stdout, re.MULTILINE)
        shown |= {("mistake", name, place) for place in raised}
    return shown


def audit_each(chosen, folder):
    """Audit each script in a process of its own, forked when all that is slow to import has been imported.

    One that compiles is started anew: its backward pass starts a thread, which OpenMP does not allow after a fork.
    """
    gc.freeze()  # the audit looks for optimizers among all objects that the collector knows
    for script in chosen:
        if "torch.compile(" in script.read_text():
            command = [sys.executable, path_of("audit_script"), script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            (folder / f"{script.stem}.out").write_text(f"{done.stdout}\nstatus {done.returncode}\n")
            (folder / f"{script.stem}.err").write_text(done.stderr)
            continue
        if not os.fork():
            signal.alarm(PATIENCE // 3)  # what hangs ends itself
            for stream, name in enumerate(("out", "err"), start=1):
                os.dup2(os.open(folder / f"{script.stem}.{name}", os.O_WRONLY | os.O_CREAT), stream)
            sys.argv = [str(path_of("audit_script")), str(script)]
            try:
                runpy.run_path(sys.argv[0], run_name="__main__")
            except SystemExit as end:
                print(f"status {end.code}")
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.wait()


@pytest.fixture(scope="module")
def audits(tmp_path_factory, request):
    """What the audit has printed, and its exit status, for each script that the chosen tests ask for."""
    folder = tmp_path_factory.mktemp("museum")
    chosen = {item.callspec.params["script"] for item in request.session.items if "audits" in item.fixturenames}
    halves = [sorted(chosen)[half::2] for half in range(2)]
    ended([fork(audit_each, half, folder, output=folder / "log", daemon=False) for half in halves])

    def of(script):
        out, err = ((folder / f"{script.stem}.{name}").read_text() for name in ("out", "err"))
        status = re.search(r"^status (\d)$", out, re.MULTILINE)
        assert status, (folder / "log").read_text() + out + err
        return SimpleNamespace(stdout=out, stderr=err, returncode=int(status[1]))

    return of


@each
def test_the_audit_finds_what_the_file_says_and_nothing_else(script, audits):
    done, wanted = audits(script), set(expected(script))
    assert found(done) - beside(wanted, found(done)) == wanted, done.stdout + done.stderr
    assert done.returncode == any(severity in ("error", "mistake") for severity, *_ in wanted)


@pytest.mark.parametrize("script", CLEAN, ids=lambda script: script.stem)
def test_the_audit_of_a_right_loop_sees_its_networks_and_ends_after_the_steps_it_was_to_watch(script, audits):
    done = audits(script)
    header = re.search(r"^\| backward pass +\| times \| (.+) \|$", done.stdout, re.MULTILINE)
    if networks := re.search("^# networks: (.+)$", script.read_text(), re.MULTILINE):
        assert re.split(r" *\| *", header[1].strip()) == networks[1].split(", ")
    if "optim." in script.read_text() and "question idle" not in script.read_text():
        assert "Stopped after 3 steps of every optimizer." in done.stdout


def beside(wanted, shown):
    """What comes with an error that ends the script: the mistake with the finding, and waste in what had run."""
    raising = {kind for severity, kind, _ in wanted if severity == "mistake" or kind == "overwritten"}
    return {finding for finding in shown - wanted if raising and finding[0] in ("mistake", "waste")}


@each
def test_a_file_is_short_and_says_what_to_expect(script):
    text = script.read_text()
    assert len(text.splitlines()) <= 40
    assert bool(list(expected(script))) != ("# expects: nothing" in text)
    catalogue = set(names())
    assert {kind for severity, kind, _ in expected(script) if severity == "mistake"} <= catalogue


def test_no_right_loop_is_said_to_be_wrong():
    assert not [clean for clean in CLEAN if any(severity == "error" for severity, *_ in expected(clean))]
