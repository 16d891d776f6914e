"""Other processes in tests: started, waited for, and never left behind, also on a machine that is short of time."""

import subprocess
import time
from contextlib import contextmanager

PATIENCE = 300  # seconds; what takes one on an idle machine may take a hundred on a starved one


@contextmanager
def program(command, **options):
    """Start `command` with its output captured as text; yield the process, which does not outlive the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition):
    """Wait until `condition()` is true, which must be within `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} seconds"
        time.sleep(0.05)
