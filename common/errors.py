"""The ways a run ends early, each with one line in place of a traceback."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class BadInput(Exception):
    """The input cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """A run has started but cannot continue. The message is one line: what happened, and what has been saved."""


@contextmanager
def as_bad_input(subject: object, kind: type | tuple = Exception) -> Iterator[None]:
    """Raise an error of the block, of a type in `kind`, as BadInput that names `subject`, an option or a file."""
    try:
        yield
    except BadInput:
        raise
    except kind as error:
        cause = " ".join(str(error).split())[:500] or type(error).__name__  # torch lists all its backends in some
        raise BadInput(f"{subject}: {cause}") from error


@contextmanager
def error_in_a_line() -> Iterator[None]:
    """End the process with one line on stderr, and status 2 for `BadInput`, 1 for `Stopped` and for a file or name."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold what is no text, or no letter of a console
    try:
        yield
    except (BadInput, Stopped, OSError, UnicodeError) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadInput) else 1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def one_line(message: str) -> str:
    """Return the message as one line: names in it may hold line breaks and bytes that are not text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
