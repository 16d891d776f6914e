"""What the tools print and where they write."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common.errors import BadInput, error_in_a_line, one_line
from common.image_files import is_among
from common.options import Options, expanded, parse


def launch(main: Callable[[Any], None], kind: type[Options]) -> None:
    """Call `main` with the options of the command line; an error ends it as in `error_in_a_line`."""
    with error_in_a_line():
        options = parse(main, kind)
        main(expanded(options, *vars(options)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with its columns aligned."""
    head, *rows = ([one_line(cell).replace("|", r"\|") for cell in row] for row in (head, *rows))
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def check_new_file(path: Path, *suffixes: str) -> None:
    """Raise BadInput, for the option --output, if `path` exists, cannot be made or has none of `suffixes`."""
    if path.suffix not in suffixes:
        raise BadInput(f"--output {path}: must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise BadInput(f"--output {path}: there is no folder {path.parent}; make it first")
    if os.path.lexists(path):
        raise BadInput(f"--output {path}: exists already; name a new file")


def check_apart(path: Path, images: str | Path) -> None:
    """Raise BadInput, for the option --output, if `path` is in a folder of images, whose next reader would find it."""
    if is_among(path, images):
        raise BadInput(f"--output {path}: is in {images}, the images of a run; name a place outside")
