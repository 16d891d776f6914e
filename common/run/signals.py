"""SIGINT (Ctrl-C) and SIGTERM end a run between two steps, not within one."""

import signal
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
    """Yield a list that gets the number of the first SIGINT or SIGTERM in the block; a second one acts as usual."""
    received = []

    def handle(number, frame):
        received.append(number)
        restore()

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        restore()
