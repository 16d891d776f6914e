"""What ends a run with one line in place of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager


class BadInput(Exception):
    """The input cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """A run has started but cannot continue. The message is one line: what happened, and what has been saved."""


@contextmanager
def blame(option: str) -> Iterator[None]:
    """Raise a ValueError of the block, from a module that knows no options, as BadInput that names `option`."""
    try:
        yield
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from error
