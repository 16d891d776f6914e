"""SIGINT (Ctrl-C) and SIGTERM end a run between two steps, not within one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """A signal has ended the run after a step; everything is saved and printed."""

    def __init__(self, number: int):
        """Keep the number of the signal."""
        super().__init__(number)
        self.status = 128 + number  # as shells report it: 130 for SIGINT, 143 for SIGTERM


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Yield a list that gets the number of the first SIGINT or SIGTERM in the block; a second one acts as usual.

    Outside the main thread, which alone receives signals, the list stays empty.
    """
    received = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        restore()
