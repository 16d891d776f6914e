"""Ctrl-C and SIGTERM end a run between two steps, not within one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """A signal has ended the run at the end of a step, with all saved and said."""

    def __init__(self, number: int):
        """Keep the number of the signal."""
        super().__init__(number)
        self.status = 128 + number  # the exit status that shells give it: 130 for SIGINT, 143 for SIGTERM


@contextmanager
def told_of_signals() -> Iterator[list[int]]:
    """Yield a list to which the first SIGINT or SIGTERM within the block adds its number; a second one acts as ever."""
    come = []

    def handle(number, frame):
        come.append(number)
        restore()

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield come
    finally:
        restore()
