"""What the pages say of the rules and of the museum. `python tests/gradient_audit/pages.py` writes it into them."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "tests" / "gradient_audit" / "museum"
TABLE = re.compile(r"(?<=\| finding \| severity \| what it means \|\n\| --- \| --- \| --- \|\n)(?:\|.*\n)+")


def table():
    """The rows of the table of findings in docs/mistakes.md."""
    from gradient_audit.rules import rules

    return "".join(f"| `{rule.kind}` | {rule.severity} | {rule.meaning} |\n" for rule in rules())


def counts():
    """What README says of the museum: patterns, each with the numbers in it."""
    rooms = ("bugs", "clean", "sources")
    bugs, clean, sources = ([path.read_text() for path in MUSEUM.glob(f"{room}/*.py")] for room in rooms)
    errors, questions = (
        [text for text in bugs if re.search(f"^# expects: ({severity}) ", text, re.M)]
        for severity in ("mistake|error", "question")
    )
    asked = len({*questions} - {*errors})
    waste = len(bugs) - len(errors) - asked
    return {
        r"bugs, {} of them published": [sum("://" in text for text in bugs)],
        r"{} of {} named, with the line: {} as errors, {} as questions, {} as waste": [
            *(len(bugs), len(bugs), len(errors), asked, waste),
        ],
        r"0 of {} called wrong; {} get a question": [len(clean), sum("# expects: question" in text for text in clean)],
        r"{} of {} classified correctly": [len(sources), len(sources)],
    }


def written(text):
    """A page, as it should be."""
    text = TABLE.sub(lambda _: table(), text)
    for form, numbers in counts().items():
        text = re.sub(form.replace("{}", r"\d+"), form.format(*numbers), text)
    return text


PAGES = [ROOT / "README.md", ROOT / "docs" / "mistakes.md"]

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page in PAGES:
        page.write_text(written(page.read_text()))
