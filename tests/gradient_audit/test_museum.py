"""The audit on the museum: published bugs, each named with its line, and right loops without a false alarm.

`museum/sources` has the code of write-ups about a GAN's gradients. A file says what the audit finds in it: `# expects:
error mixed at "g_loss.backward()"` is the severity, the kind, and a part of the line named first, `# expects: nothing`
a right loop. `# expects: mistake second-backward at "..."` is an error raised in that line, and the mistake behind it,
`# mistake: no-zero-grad` one that a finding names. `# networks: encoder` are the columns of the table, `# says: Not
reached: "slope"` is a part of the report, with the place of the quoted code. `# cure: "old" -> "new"` is an edit that
the first cure asks for; the old text occurs once in the code, a `\\n` is a new line, edits apply in order. `# trains:
encoder` is what is trained then. `# today: ...` is what is said in place of all this. The code as the write-up prints
it is in the text of its name beside the file, or in that of `# printed: name.txt`, which several files share, and
`# differs: "old" -> "new"` is an edit of that text, which a comment explains.
"""

import ast
import atexit
import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from processes import RUN_AUDIT, forked

pytestmark = pytest.mark.museum

MUSEUM = Path(__file__).parent / "museum"
RAISING = ("overwritten", "freed")
TRACED = ("trace.json", "said.json")
SHOWN = re.compile(r"^- \*\*(\S+)\*\* \((\w+)\):(?:.* \[(\w+\.py:\d+)|)", re.MULTILINE)


def headers(script, name):
    """What the lines `# name:` of a file say."""
    return re.findall(f"^# {name}: (.+)$", script.read_text(), re.MULTILINE)


def place(script, code):
    """The line of the file with the code, as "file:line"."""
    (number,) = (n for n, line in enumerate(script.read_text().splitlines(), 1) if code in line and line[0] != "#")
    return f"{script.name}:{number}"


def expected(script):
    """The lines `# expects:` of a file, as (severity, kind, "file:line" or "")."""
    for line in {*headers(script, "expects")} - {"nothing"}:
        severity, kind, code = re.fullmatch(r'(\S+) (\S+)(?: at "(.+)")?', line).groups()
        yield severity, kind, place(script, code) if code else ""


def found(done):
    """The findings that were printed, in the same form; a mistake has the line of the script that raised."""
    told = SHOWN.findall(done.stdout)
    assert all(told.count(waste) == 1 for waste in told if waste[1] == "waste"), done.stdout  # a line, one waste
    shown = {(severity, kind, place) for kind, severity, place in told}
    for name in re.findall("This is the mistake `(.+?)`", done.stdout):
        *_, raised = re.findall(r'^  File ".+/museum/\w+/(.+)", line (\d+)', done.stderr, re.MULTILINE)
        shown.add(("mistake", name, ":".join(raised)))
    return shown


def beside(wanted, shown):
    """What comes with an error that ends the script: the mistake with the finding, and waste in what had run."""
    raising = {kind for severity, kind, _ in wanted if severity == "mistake" or kind == "overwritten"}
    return {finding for finding in shown - wanted if raising and finding[0] in ("mistake", "waste")}


def columns(done):
    """The names of the networks in the table."""
    header = re.search(r"^\| backward pass +\| times \|(.*)\|$", done.stdout, re.MULTILINE)
    return re.split(r" *\| *", header[1].strip()) if header else []


@cache
def judge():
    """A process that judges traces without PyTorch, in an empty folder."""
    command = [sys.executable, "-I", str(MUSEUM / "trace_json.py")]
    folder = tempfile.mkdtemp()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)
    atexit.register(process.communicate)  # closes its input, at which it ends
    return process


def check_trace(folder, script):
    """Check that the trace says the same where neither PyTorch nor the script is, and the museum is nowhere."""
    trace, said = ((folder / name).read_text().replace(str(script.parent), "/nowhere") for name in TRACED)
    (folder / TRACED[0]).write_text(trace)
    print(folder / TRACED[0], file=judge().stdin, flush=True)
    assert json.loads(judge().stdout.readline()) == json.loads(said)


def audit(script):
    """Check that the audit of the script finds what the file says and nothing else; return it, and the severities.

    And that the trace alone tells the same, word for word.
    """
    assert headers(script, "expects")
    with tempfile.TemporaryDirectory() as folder:
        done, wanted = forked(RUN_AUDIT, script, TRACES=folder), set(expected(script))
        check_trace(Path(folder), script)
    assert found(done) - beside(wanted, found(done)) == wanted, done.stdout + done.stderr
    assert all(columns(done) == networks.split(", ") for networks in headers(script, "networks")), done.stdout
    says = [re.sub('"(.+)"', lambda code: place(script, code[1]), said) for said in headers(script, "says")]
    assert [said for said in says if said not in done.stdout] == [], done.stdout
    assert all(re.search(f"Mistakes like it: .*`{name}`", done.stdout) for name in headers(script, "mistake"))
    raised = re.findall(r"^(\w+): ", done.stderr, re.MULTILINE)[-1:] if "Traceback" in done.stderr else []
    assert re.findall(r"^The (?:script|audit) raised (\w+): ", done.stdout, re.MULTILINE) == raised
    raises = any(severity == "mistake" or kind in RAISING for severity, kind, _ in wanted)
    assert bool(raised) == (raises and "PyTorch gives a wrong gradient and no error" not in done.stdout)
    assert not re.search(r"/gradient_audit/(mistakes/)?\w+\.py", done.stderr)  # no frame of the audit
    return done, {severity for severity, *_ in wanted}


def edited(code, script, name):
    """The code with the edits `# name: "old" -> "new"` of a file."""
    for edit in re.findall(f'^# {name}: "(.+)" -> "(.*)"$', script.read_text(), re.MULTILINE):
        old, new = (part.replace(r"\n", "\n") for part in edit)
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return code


def statements(body):
    """The syntax trees of statements in order: of a compound one the header, then what is in it, then its end."""
    for node in body:
        inner = getattr(node, "body", None)
        node.body = []
        tree = ast.dump(node)
        yield tree
        if inner:
            yield from statements(inner)
            yield f"end of {tree}"


def files(folder):
    """The files of a folder, as parameters; those with a line `# today:` are expected to fail."""
    for script in sorted(MUSEUM.glob(f"{folder}/*.py")):
        fails = [pytest.mark.xfail(reason=r, raises=AssertionError, strict=True) for r in headers(script, "today")]
        yield pytest.param(script, id=script.stem, marks=fails)


@pytest.mark.parametrize("script", [*files("bugs")])
def test_a_bug_is_named_with_its_line(script):
    done, severities = audit(script)
    assert severities and done.returncode == bool(severities & {"error", "mistake"})


CURED = [script for script in sorted(MUSEUM.glob("bugs/*.py")) if not headers(script, "today")]
CURED += [script for script in sorted(MUSEUM.glob("sources/*.py")) if headers(script, "cure")]


@pytest.mark.parametrize("script", CURED, ids=lambda script: script.stem)
def test_what_the_cure_says_cures_and_trains_what_was_meant(script, tmp_path):
    code, kinds = re.sub("^# .*\n", "", script.read_text(), flags=re.M), {kind for _, kind, _ in expected(script)}
    cured = tmp_path / script.name
    cured.write_text(edited(code, script, "cure"))
    done = forked(RUN_AUDIT, cured)
    assert headers(script, "cure") and done.returncode == 0, done.stdout + done.stderr
    rows = [re.split(r" *\| *", row)[-1 - len(columns(done)) : -1] for row in re.findall(r"^\| `.+", done.stdout, re.M)]
    used = {name for row in rows for name, cell in zip(columns(done), row, strict=False) if cell == "used"}
    assert used >= {name for names in headers(script, "trains") for name in names.split(", ")}, done.stdout
    assert not kinds & {kind for _, kind, _ in found(done)}, done.stdout


@pytest.mark.parametrize("script", [*files("clean")])
def test_a_right_loop_is_not_wrong_and_ends_after_the_steps_that_were_to_be_watched(script):
    done, _ = audit(script)
    assert done.returncode == 0
    if "optim." in script.read_text() and "question idle" not in script.read_text():
        assert "Stopped after 3 steps of every optimizer." in done.stdout


@pytest.mark.parametrize("script", [*files("sources")])
def test_the_code_of_the_write_ups_runs_and_is_told_right_or_wrong_as_it_is(script):
    assert forked(script).returncode == ("# expects: mistake" in script.read_text())
    done, severities = audit(script)
    assert done.returncode == bool("No backward pass ran." in done.stdout or severities & {"error", "mistake"})


@pytest.mark.parametrize("script", [*files("sources")])
def test_every_statement_that_a_write_up_prints_stands_in_its_exhibit_as_printed_and_in_that_order(script):
    """What makes the code run may stand between; what was written after a description has no printed text."""
    text = script.with_name([*headers(script, "printed"), f"{script.stem}.txt"][0])
    assert text.exists() != ("\nWritten after " in script.read_text())
    printed = edited(text.read_text(), script, "differs") if text.exists() else ""
    here = statements(ast.parse(script.read_text()).body)
    missing = [tree for tree in statements(ast.parse(printed).body) if tree not in here]
    assert missing[:1] == []  # after one that is missing, none is found


@pytest.mark.parametrize("kept", ["err_{}", "err_{}.item()"])
def test_running_out_of_memory_is_a_mistake_only_where_graphs_are_kept(tmp_path, kept):
    text = (MUSEUM / "bugs" / "losses_in_lists_with_graph.py").read_text()
    for loss in "gd":
        text = text.replace(f"append(err_{loss})", f"append({kept.format(loss)})")
    (tmp_path / "lists.py").write_text(f"{text}raise torch.OutOfMemoryError('CUDA out of memory.')\n")
    done = forked(RUN_AUDIT, "--iterations", 99, tmp_path / "lists.py")
    assert "The script raised OutOfMemoryError: CUDA out of memory." in done.stdout
    assert ("This is the mistake `loss-kept-with-graph`" in done.stdout) == (kept == "err_{}")


@pytest.mark.parametrize(("head", "features"), [("Reverse.apply(features)", "used"), ("features.detach()", "-")])
def test_the_terms_show_whether_a_head_gives_the_features_a_gradient(tmp_path, head, features):
    script = tmp_path / "heads.py"
    script.write_text((MUSEUM / "clean" / "domain_heads.py").read_text().replace("Reverse.apply(features)", head))
    done = forked(RUN_AUDIT, script)
    row = r"^\|   \+ .*cross_entropy\(domains, .*\|  +\| (\S+)[^|]*\| (\S+)[^|]*\| (\S+)[^|]*\|$"
    (cells,) = re.findall(row, done.stdout, re.MULTILINE)
    assert cells == (features, "-", "used")


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_fakes_that_are_not_detached_get_one_answer_in_one_module_or_several_with_one_optimizer_or_two(
    tmp_path, joined, apart
):
    text = (MUSEUM / "bugs" / "fakes_move_parts_of_one_model.py").read_text()
    if joined:
        text = text.replace("encoder.parameters()), torch.optim.Adam(decoder", "[*encoder.parameters(), *decoder")
        text = text.replace("*decoder.parameters())]", "*decoder.parameters()])]")
    script = tmp_path / "fakes.py"
    script.write_text(text.replace("nn.ModuleDict(", "dict(") if apart else text)
    wanted = {("error", "mixed", "d_loss.backward()"), ("waste", "wasted", "g_loss.backward(retain")}
    assert found(forked(RUN_AUDIT, script)) == {(*first, place(script, code)) for *first, code in wanted}


@pytest.mark.parametrize(("heads", "count"), [(6, 6), (7, 1)])
def test_a_module_of_many_children_is_one_column_though_losses_reach_only_some(tmp_path, heads, count):
    script = tmp_path / "heads.py"
    script.write_text(
        "import torch\n"
        f"heads = torch.nn.ModuleList(torch.nn.Linear(2, 1) for _ in range({heads}))\n"
        "optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)\n"
        "sum(head(torch.ones(1, 2)).square().sum() for head in heads).backward()\n"
        "optimizer.step()\n"
    )
    assert len(columns(forked(RUN_AUDIT, script))) == count
