"""The report of an audit, as a file."""

import json
from pathlib import Path

from common.run.audit_page import page

SUFFIXES = (".html", ".md", ".json")


def save(path: Path, data: dict, text: str) -> None:
    """Write a report in the form that the suffix of its name says.

    path: its suffix is one of `SUFFIXES`. data: as `GradientAudit.data` gives it, perhaps with further keys; the
    contents of a .json file and, as a page, of an .html file. text: Markdown, the contents of an .md file.
    """
    contents = page(data) if path.suffix == ".html" else text
    if path.suffix == ".json":
        contents = json.dumps(data, indent=2)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(f"{contents}\n", encoding="utf-8")
    temporary.replace(path)
