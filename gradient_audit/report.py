"""The report of an audit, as a file."""

import json
from pathlib import Path

from common.run.folder import write_whole
from gradient_audit.page import page

SUFFIXES = (".html", ".md", ".json")


def save(path: Path, data: dict, text: str) -> None:
    """Write a report in the form that the suffix of its name says.

    path: its suffix is one of `SUFFIXES`. data: as `GradientAudit.data` gives it, perhaps with further keys; the
    contents of a .json file and, as a page, of an .html file. text: Markdown, the contents of an .md file.
    """
    forms = {".html": lambda: page(data), ".md": lambda: text, ".json": lambda: json.dumps(data, indent=2)}
    contents = forms[path.suffix]()
    write_whole(path, lambda file: file.write(f"{contents}\n".encode()))
