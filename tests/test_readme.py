"""What README and docs name exists, their links lead somewhere, and the index of messages is that of the catalogue."""

import re
import shlex

import pytest
from helpers import ROOT, call
from processes import RUN_AUDIT, forked

from gradient_audit.__main__ import parse
from gradient_audit.mistakes import load, match

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
each = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
INDEX = re.findall(r"^\| (.+?) \| ((?:`[\w-]+`(?:, )?)+) \|$", (ROOT / "docs" / "mistakes.md").read_text(), re.M)
COMMANDS = re.findall(r"^python (scripts/\S+\.py)((?: [^\n]*)?)$", "\n".join(p.read_text() for p in PAGES), re.M)
QUESTION = re.compile(r"^### (\d+)\. .*?^```\n(.*?)^```$", re.M | re.S)
ENGLISH, CHINESE = (dict(QUESTION.findall((ROOT / "docs" / f"questions{of}.md").read_text())) for of in ("", ".zh"))
KINDS = re.compile(r"^python (?:- <<'END'\n(.*?)^END|-m gradient_audit (.*?)|scripts/.*?)\n", re.M | re.S)


def headings(page):
    titles = re.findall(r"^##+ (.*)", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@each
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)]*)\)", page.read_text()):
        if not target.startswith("http"):
            path, _, heading = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), target
            assert not heading or heading in headings(there), target


@each
def test_paths_and_scripts_that_are_named_exist(page):
    text = page.read_text()
    paths = re.findall(r"(?:scripts|common|tests|docs|runs/reference|runs/mistakes|runs/figures)/[\w/.]+\.\w+", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    known = {path.name for folder in ("scripts", "common", "gradient_audit") for path in (ROOT / folder).rglob("*.py")}
    assert {name for name in re.findall(r"`(\w+\.py)`", text)} <= known | {"gan_mine.py"}


@pytest.mark.parametrize(("message", "names"), INDEX)
def test_a_message_of_the_index_finds_the_mistakes_beside_it(message, names):
    named = [load(name) for name in re.findall(r"[\w-]+", names)]
    assert {mistake.name for mistake in named} <= {mistake.name for mistake in match(message)}


@pytest.mark.parametrize("script", sorted({script for script, _ in COMMANDS}))
def test_options_of_the_commands_are_in_the_help(script, capsys):
    with pytest.raises(SystemExit):
        call(script.split("/")[-1].removesuffix(".py"), "--help")
    text = capsys.readouterr().out
    for other, arguments in COMMANDS:
        for option in re.findall(r" (--[\w-]+)", arguments if other == script else ""):
            assert re.search(rf"{option}(?![\w-])", text), option


def test_both_pages_of_questions_have_the_same_numbers_and_commands_and_begin_with_a_list_of_all():
    assert ENGLISH == CHINESE
    for page in ("questions.md", "questions.zh.md"):
        numbered = re.findall(r"^(?:### )?(\d+\. )\[?(.*?)(?:\]\(#.*)?$", (ROOT / "docs" / page).read_text(), re.M)
        assert numbered[: len(ENGLISH)] == numbered[len(ENGLISH) :]
    assert [*ENGLISH] == [str(number) for number in range(1, len(ENGLISH) + 1)]


@pytest.mark.parametrize("commands", ENGLISH.values(), ids=ENGLISH)
def test_the_commands_of_a_question_name_what_exists_and_its_code_runs(commands, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert KINDS.sub("", commands) == ""
    for code, arguments in KINDS.findall(commands):
        exec(code, {})
        options = parse(shlex.split(arguments or "--list"))
        assert options.mistake is None or load(options.mistake)
        assert options.error is None or match(options.error)


def test_the_example_of_the_audit_is_what_it_prints():
    example = re.search(r"^\$ python -m gradient_audit (\S+)\n(.+?)\n\.\.\.$", PAGES[0].read_text(), re.M | re.S)
    script, printed = example.groups()
    assert printed in forked(RUN_AUDIT, script, folder=ROOT).stdout
