"""README and docs name what exists, and quote figures that are in a table or that the command below them prints."""

import re
import shlex

import pytest
import torch
from helpers import ROOT, call
from processes import RUN_AUDIT, forked

from gradient_audit.__main__ import parse
from gradient_audit.mistakes import load, match
from gradient_audit.mistakes.showing import explain

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = [path for folder in ("scripts", "common") for path in sorted((ROOT / folder).rglob("*.py"))]
each = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
INDEX = re.findall(r"^\| (.+?) \| ((?:`[\w-]+`(?:, )?)+) \|$", (ROOT / "docs" / "mistakes.md").read_text(), re.M)
COMMANDS = re.findall(r"^python (scripts/\S+\.py)((?: [^\n]*)?)$", "\n".join(p.read_text() for p in PAGES), re.M)
QUESTION = re.compile(r"^### (\d+)\. [^\n]*\n(.*?)^```\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.M | re.S)
ENGLISH, CHINESE = (QUESTION.findall((ROOT / "docs" / f"questions{of}.md").read_text()) for of in ("", ".zh"))
KINDS = re.compile(r"^python (?:- <<'END'\n(.*?)^END|-m gradient_audit (.*?)|scripts/.*?)\n", re.M | re.S)
FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+%?|%|(?= (?:seconds|MiB|GFLOPs|秒)))(?!\w)")
VERSIONS = {"0.4", "1.4", "1.5", "1.7", "1.8"}  # of PyTorch


def sections(page):
    titles = re.split(r"^##+ (.*)$", page.read_text(), flags=re.M)[1:]
    slugs = (re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles[::2])
    return dict(zip(slugs, titles[1::2], strict=True))


def figures(paragraph):
    """The numbers that are measured: those with a decimal point, a percent sign or a unit."""
    return sorted(FIGURE.findall(re.sub(r"`[^`]*`|\]\([^)]*\)|(?<=\d),(?=\d)", "", paragraph)))


def rows(paragraph):
    """Of the tables that a paragraph links to: their heads, and the rows that it names."""
    text, lines = re.sub(r"`|gan_|\.py", "", paragraph), []
    for page, anchor in re.findall(r"(results|mistakes)\.md#([\w-]+)\)", paragraph):
        section = re.sub(r"`|gan_|\.py", "", sections(ROOT / "docs" / f"{page}.md")[anchor])
        (_, head), *table = re.findall(r"^\| *(.*?) *\|(.*)", section, re.M)
        lines += [head, *(line for name, line in table if name in text)]
    return "\n".join(lines)


def missing(paragraph, source):
    """The figures of a paragraph that are no number of the source, rounded."""
    numbers = re.findall(r"\d+\.?\d*%?", source.replace(",", ""))
    rounded = {f"{float(n.strip('%')):.{digits}f}" + "%" * n.endswith("%") for n in numbers for digits in range(5)}
    return {*figures(paragraph)} - rounded - VERSIONS


@each
def test_links_lead_to_files_and_headings_and_paths_and_scripts_that_are_named_exist(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)]*)\)", text):
        if not target.startswith("http"):
            path, _, heading = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), target
            assert not heading or heading in sections(there), target
    paths = re.findall(r"(?:scripts|common|tests|docs|runs/reference|runs/mistakes|runs/figures)/[\w/.]+\.\w+", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    known = {path.name for folder in ("scripts", "common", "gradient_audit") for path in (ROOT / folder).rglob("*.py")}
    assert {name for name in re.findall(r"`(\w+\.py)`", text)} <= known | {"gan_mine.py"}


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=lambda page: page.stem)
def test_a_measured_figure_is_in_a_row_that_its_paragraph_names_of_a_table_that_it_links_to(page):
    for paragraph in page.read_text().split("\n\n"):
        if source := rows(paragraph):
            assert not missing(paragraph, source)
        elif page.suffix == ".py" or page.stem in ("README", "questions", "questions.zh"):
            assert not re.search(r"\d (?:MiB|GFLOPs)|FID (?:of )?\d", paragraph)


def test_the_lines_that_add_curves_of_the_gradients_norms_add_them():
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "curves.md").read_text(), re.M | re.S)
    generator, discriminator = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1)
    generator.weight.grad, results = torch.tensor([[3.0, 4.0]]), {}
    exec(code, {"torch": torch, "generator": generator, "discriminator": discriminator, "results": results})
    assert results == {"gradient_norm/g": 5, "gradient_norm/d": 0}


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


def test_both_pages_of_questions_have_the_same_commands_and_figures_and_begin_with_a_list_of_all():
    english, chinese = ([(n, figures(text), *rest) for n, text, *rest in page] for page in (ENGLISH, CHINESE))
    assert english == chinese
    for page in ("questions.md", "questions.zh.md"):
        numbered = re.findall(r"^(?:### )?(\d+\. )\[?(.*?)(?:\]\(#.*)?$", (ROOT / "docs" / page).read_text(), re.M)
        assert numbered[: len(ENGLISH)] == numbered[len(ENGLISH) :]
    assert not re.search(r"[\u3001-\uffee]\n[^\n\d]", (ROOT / "docs" / page).read_text()), "shows as a gap"
    assert [number for number, *_ in ENGLISH] == [str(number) for number in range(1, len(ENGLISH) + 1)]


@pytest.mark.parametrize(("text", "commands", "output"), [q[1:] for q in ENGLISH], ids=[q[0] for q in ENGLISH])
def test_the_commands_of_a_question_print_the_figures_of_its_answer(text, commands, output, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert KINDS.sub("", commands) == ""
    for code, arguments in KINDS.findall(commands):
        exec(code, {"__name__": "__main__"})
        options = parse(shlex.split(arguments or "--list"))
        assert options.script or options.list or explain(options.mistake, options.error, {})
    if "gradient_walkthrough" in commands:
        call("gradient_walkthrough")
    printed = capsys.readouterr().out
    assert output in printed
    for paragraph in text.split("\n\n"):
        assert not missing(paragraph, rows(paragraph) or printed)


def test_the_example_of_the_audit_is_what_it_prints_and_the_table_of_the_gallery_is_that_of_its_runs():
    assert (ROOT / "runs" / "mistakes" / "table.md").read_text() in (ROOT / "docs" / "mistakes.md").read_text()
    example = re.search(r"^\$ python -m gradient_audit (\S+)\n(.+?)\n\.\.\.$", PAGES[0].read_text(), re.M | re.S)
    script, printed = example.groups()
    assert printed in forked(RUN_AUDIT, script, folder=ROOT).stdout
