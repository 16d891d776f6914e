"""The report of an audit, as a file."""

import json
import os
from pathlib import Path

SUFFIXES = (".json", ".md")


def save(path: Path, data: dict, text: str) -> None:
    """Write a report in the form that the suffix of its name says.

    path: its suffix is one of `SUFFIXES`. data: as `GradientAudit.data` gives it, perhaps with further keys; the
    contents of a .json file. text: Markdown, the contents of an .md file.
    """
    contents = json.dumps(data, indent=2) if path.suffix == ".json" else text
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(f"{contents}\n", encoding="utf-8")
    os.replace(temporary, path)
