"""What the README names exists, its links lead somewhere, and its index of messages is that of the pitfalls."""

import re

import pytest
from common.pitfalls import PITFALLS, match_error
from helpers import ROOT, call

README = (ROOT / "README.md").read_text()
HEADINGS = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^##+ (.*)", README, re.M)}
INDEX = re.findall(r"^\| (.+?) \| ((?:`[\w-]+`(?:, )?)+) \|$", README.split("## My curves")[0], re.M)


def test_links_within_the_page_lead_to_headings():
    assert set(re.findall(r"\]\(#([^)]*)\)", README)) <= HEADINGS


def test_paths_exist():
    tools = {path.name for path in (ROOT / "scripts").rglob("*.py")}
    paths = re.findall(r"(?:scripts|common|tests|runs/reference|runs/mistakes|runs/figures)/[\w/.]+\.\w+", README)
    names = re.findall(r"`(\w+\.py)`", README)
    assert paths
    assert names
    assert [path for path in paths if not (ROOT / path).exists()] == []
    known = tools | {path.name for path in (ROOT / "common").rglob("*.py")}
    assert [name for name in names if name not in known] == []


@pytest.mark.parametrize(("message", "names"), INDEX)
def test_a_message_of_the_index_finds_the_pitfalls_beside_it(message, names):
    found = {pitfall.name for pitfall in match_error(message)}
    named = set(re.findall(r"[\w-]+", names))
    assert named <= {pitfall.name for pitfall in PITFALLS}
    errors = named - {pitfall.name for pitfall in PITFALLS if pitfall.silent}
    assert errors <= found


def test_the_index_is_found():
    assert len(INDEX) >= 10


COMMANDS = re.findall(r"^python (scripts/\S+\.py)((?: [^\n]*)?)$", README, re.M)


@pytest.mark.parametrize("script", sorted({script for script, _ in COMMANDS if "audit" not in script}))
def test_options_of_the_commands_are_in_the_help(script, capsys):
    with pytest.raises(SystemExit):
        call(script.split("/")[-1].removesuffix(".py"), "--help")
    shown = capsys.readouterr().out
    for other, arguments in COMMANDS:
        for option in re.findall(r" (--[\w-]+)", arguments if other == script else ""):
            assert option in shown
