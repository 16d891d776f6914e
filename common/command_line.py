"""The command line of every script: options from a dataclass, the script's docstring as help, bad input in one line."""

import contextlib
import io
import sys
from collections.abc import Callable
from typing import TypeVar

import tyro

Options = TypeVar("Options")


class BadInput(Exception):
    """What the user gave cannot work. The message is one line: the option or file, what is wrong, what to do."""


def launch(main: Callable[[Options], None], options: type[Options]) -> None:
    """Parse the command line into `options` and call `main` with it.

    Ends the process with status 2 and one line on stderr where the command line does not parse or `main` raises
    `BadInput`.
    """
    try:
        main(parse(options, main.__globals__["__doc__"]))
    except BadInput as error:
        # A file's name may hold line breaks, and bytes that are no text.
        line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(error))
        print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


def parse(options: type[Options], description: str) -> Options:
    """Return the `options` that the command line gives; raises `BadInput` where it gives none."""
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(options, description=description)
    except SystemExit as exit:
        if not exit.code:
            raise
    # tyro frames its message over several lines; the first paragraph inside the frame says what is wrong.
    paragraph = box.getvalue().split("│ ──")[0].splitlines()[1:]
    raise BadInput(" ".join(line.strip("│╭╮╰╯─ ") for line in paragraph).strip() + " (see --help)")
