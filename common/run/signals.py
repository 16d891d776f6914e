"""SIGINT (Ctrl-C) and SIGTERM end a run between two steps, not within one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """A signal, whose number is the argument, has ended the run after a step; everything is saved and printed."""


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Yield a list that gets the number of the first SIGINT or SIGTERM in the block; a second one acts as usual."""
    received, before = [], {}

    def note(number: int, _frame: object) -> None:
        received.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is threading.main_thread():  # which alone receives signals
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        restore()
