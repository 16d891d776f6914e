"""Hooks that do not hurt: what raises inside the audit ends the watching, and all that was replaced is put back."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest import mock

from gradient_audit.watch.frames import PACKAGE


class Guard:
    """Whether the audit still watches."""

    def __init__(self):
        self.closed = False  # whether the hooks add nothing more
        self.failure = ""  # what raised inside the audit, or why it cannot watch


class CannotWatch(Exception):
    """Raised inside of the audit where a script does what it cannot watch; the message says what."""


def guarded(hook: Callable) -> Callable:
    """Return a method that returns None where it raises, and once the guard of its object is closed.

    Its exception, with the audit's own line, becomes the failure; what ends the script, as Ctrl-C, goes through.
    """

    @functools.wraps(hook)
    def harmless(self, *args, **kwargs):
        guard = self.guard
        if guard.closed:
            return None
        try:
            return hook(self, *args, **kwargs)
        except CannotWatch as error:
            guard.failure, guard.closed = str(error), True
        except Exception as error:
            lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
            where = f"{Path(lines[-1].filename).name}:{lines[-1].lineno}"
            said = " ".join(str(error).split())
            guard.failure = f"{type(error).__name__}: {said} ({where}). Please report it, with your script"
            guard.closed = True

    return harmless


@functools.cache
def signature_of(function: Callable) -> inspect.Signature | None:
    """Return the signature of a function; None for one in C, as most of a tensor's, that has none."""
    with suppress(ValueError, TypeError):
        return inspect.signature(function)


def bind(function: Callable, args: Sequence, kwargs: dict) -> inspect.BoundArguments | None:
    """Return the arguments of a call by the function's signature; None where that does not tell them."""
    with suppress(TypeError):  # a function that wraps another one may take what its signature does not have
        return signature_of(function).bind(*args, **kwargs) if signature_of(function) else None


def watch_calls(hooks: ExitStack, owner: object, name: str, note: Callable, *, of_result: bool = False) -> None:
    """Have `note` called after each call of a function, with its arguments or result, until `hooks` is closed.

    The arguments come in the order of the function's signature, however the script gives them.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(*args, **kwargs):
        args = [list(value) if isinstance(value, Iterator) else value for value in args]  # for both
        kwargs = {name: list(value) if isinstance(value, Iterator) else value for name, value in kwargs.items()}
        result = original(*args, **kwargs)
        if of_result:
            note(result)
        else:
            bound = bind(original, args, kwargs) if kwargs else None
            note(*bound.args, **bound.kwargs) if bound else note(*args, **kwargs)
        return result

    hooks.enter_context(mock.patch.object(owner, name, watched))
