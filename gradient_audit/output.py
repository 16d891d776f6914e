"""The report of an audit, as a file."""

import json
import os
from pathlib import Path

from gradient_audit.page import page

SUFFIXES = (".html", ".md", ".json")


def save(path: Path, data: dict, text: str) -> None:
    """Write a report in the form that the suffix of its name, one of `SUFFIXES`, says; it is whole, or not there.

    data: what `page` takes, for .html and .json. text: Markdown, for .md. Raises OSError if it cannot be written.
    """
    forms = {".html": lambda: page(data), ".md": lambda: text, ".json": lambda: json.dumps(data, indent=2)}
    contents = forms[path.suffix]()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(f"{contents}\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
