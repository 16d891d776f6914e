"""SIGINT (Ctrl-C) and SIGTERM end a run between two steps, not within one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OPEN: dict[int, list[int]] = {}  # what each open block has received
BEFORE: dict[int, object] = {}  # the handlers before the first of them


class Interrupted(Exception):
    """A signal has ended the run after a step; everything is saved and printed."""

    def __init__(self, number: int):
        """Keep the number of the signal."""
        super().__init__(number)
        self.status = 128 + number  # as shells report it: 130 for SIGINT, 143 for SIGTERM


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Yield a list that gets the number of the first SIGINT or SIGTERM in the block; a second one acts as usual.

    Blocks may overlap: the first installs the handlers, the last restores those before. Outside the main thread, which
    alone receives signals, the list stays empty.
    """
    received = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    if not OPEN:
        BEFORE.update({number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)})
    OPEN[id(received)] = received
    try:
        yield received
    finally:
        del OPEN[id(received)]
        if not OPEN:
            restore()


def handle(number: int, _frame: object) -> None:
    """Note a signal for all open blocks."""
    for received in OPEN.values():
        received.append(number)
    restore()


def restore() -> None:
    """Restore the handlers of before."""
    while BEFORE:
        signal.signal(*BEFORE.popitem())
