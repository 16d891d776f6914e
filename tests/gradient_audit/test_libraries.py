"""Passes that an installed library calls: what is told of them has the library's line, and the user's."""

import re
from pathlib import Path

import pytest
from processes import RUN_AUDIT, forked

LIBRARY = Path(__file__).parent / "museum" / "site-packages" / "gan_library.py"
LINES = LIBRARY.read_text().splitlines()
HEAD = f"""import sys; sys.path.append({str(LIBRARY.parent)!r})
import gan_library, torch
torch.manual_seed(0)
G, D = torch.nn.Linear(4, 8), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
"""


def at(code, script="train.py:5"):
    """The user's line and the library's with this code, as a report names them."""
    (number,) = (number for number, line in enumerate(LINES, 1) if code in line)
    return f"{script} via gan_library.py:{number}"


def audit(tmp_path, code):
    script = tmp_path / "train.py"
    script.write_text(HEAD + code)
    done = forked(RUN_AUDIT, script)
    return done, re.findall(r"^- \*\*(\w+)\*\* .*? \[(.*?)(?:, .*)?\] ", done.stdout, re.MULTILINE)


def pasted(tmp_path, code):
    """The report on the same code where the library's is the user's own."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gan_library.py").write_text(LIBRARY.read_text())
    (tmp_path / "own" / "train.py").write_text(HEAD.replace(str(LIBRARY.parent), str(tmp_path / "own")) + code)
    return forked(RUN_AUDIT, tmp_path / "own" / "train.py")


@pytest.mark.parametrize("call", ["two_places(G, D)", "TrainedWhenMade(G, D)"])
def test_two_places_of_a_library_are_two_rows_and_two_findings_with_terms_and_dead_ones(tmp_path, call):
    done, found = audit(tmp_path, f"gan_library.{call}\n")
    loss = at("0.1 * torch.zeros(())")
    wastes = [("wasted", at(code)) for code in ("loss_real.backward", "# two", "loss_g.backward()")]
    assert found == [("dead", loss), *wastes]
    assert "(dead)" in done.stdout and f"a term of the sum from {loss} contributes no gradient" in done.stdout
    assert f"from {loss} contributes" in done.stdout.splitlines()[1]  # the verdict
    assert re.search(r"via gan_library.py:\d+ `D\(fake\).pow\(2\).mean\(\)` +\| +\| wasted 100% \|", done.stdout)


@pytest.mark.parametrize(
    ("call", "kind", "code"), [("two_places", "wasted", "# two"), ("graph_dropped", "graph", "# dropped")]
)
def test_a_librarys_pass_gets_the_cells_shares_and_findings_that_the_users_own_would_get(tmp_path, call, kind, code):
    done, found = audit(tmp_path, f"gan_library.{call}(G, D)\n")
    own = pasted(tmp_path, f"gan_library.{call}(G, D)\n")
    assert (kind, at(code)) in found
    rows = [re.findall(r"\| [^|`]* \| [^|`]* \| [^|`]* \|$", report.stdout, re.MULTILINE) for report in (done, own)]
    assert len(rows[0]) > 3 and rows[0] == rows[1]
    assert [kind for kind, _ in found] == re.findall(r"^- \*\*(\w+)\*\*", own.stdout, re.MULTILINE)


def test_an_error_that_is_raised_in_a_library_has_its_lines_in_each_fact(tmp_path):
    done, _ = audit(tmp_path, "gan_library.steps_between(G, D)\n")
    for fact, code in {"wanted": "# late", "read": "d_fake = D(G(", "written": "# between"}.items():
        library = at(code).partition(" via ")[2]
        assert re.search(rf"^- {fact} by +`train.py:5 .*` via {library} `", done.stdout, re.MULTILINE), done.stdout


def test_of_a_helper_in_a_library_the_outermost_line_that_differs_is_named_and_never_code_without_a_file(tmp_path):
    done, found = audit(tmp_path, "gan_library.Trainer(G, D).fit()\n")
    assert found == [("wasted", at("# for D")), ("wasted", at("# for G"))]
    assert "typed" not in done.stdout and "0x1" not in done.stdout
