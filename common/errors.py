"""The ways a run ends early, each with one line in place of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager


class BadInput(Exception):
    """The input cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """A run has started but cannot continue. The message is one line: what happened, and what has been saved."""


@contextmanager
def refusing(subject: object, kind: type | tuple = Exception) -> Iterator[None]:
    """Raise an error of the block, of a type in `kind`, as BadInput that names `subject`, an option or a file."""
    try:
        yield
    except BadInput:
        raise
    except kind as error:
        cause = " ".join(str(error).split())[:500] or type(error).__name__  # torch lists all its backends in some
        raise BadInput(f"{subject}: {cause}") from error
