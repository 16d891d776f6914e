"""The report of an audit, as a file."""

import json
from pathlib import Path

from common.run.folder import write_whole

SUFFIXES = (".json", ".md")


def save(path: Path, data: dict, text: str) -> str:
    """Write a report in the form that the suffix of its name says; return a sentence that says where it is.

    path: its suffix is one of `SUFFIXES`. data: as `GradientAudit.data` gives it, perhaps with further keys; the
    contents of a .json file. text: Markdown, the contents of an .md file.
    """
    contents = json.dumps(data, indent=2) if path.suffix == ".json" else text
    write_whole(path, lambda file: file.write(f"{contents}\n".encode()))
    return f"The report is in {path}"
