"""What runs now, and how much of it is watched in detail."""

import threading

import torch

from gradient_audit.places import Place
from gradient_audit.record import Pass

MOST_PASSES = 10_000  # that are watched at all: it bounds the memory of an audit
DETAILED = 12  # backward passes with forward passes, terms and lines of operations: two rounds of WGAN's five and one
AGAIN = 4  # likewise, after a line has run a pass or a step for the first time


class Activity:
    """What runs at this moment, and the passes that were watched in detail."""

    def __init__(self):
        self.thread: int | None = None  # the one that is watched; None: the first that trains
        self.choice = threading.Lock()  # of the thread: several may begin to train at once
        self.call: Pass | None = None  # of autograd
        self.steps = 0  # of optimizers
        self.closures = 0  # of steps
        self.detailed = False  # what runs is watched in detail
        self.measuring = False  # a pass of the audit's own runs
        self.spent = 0  # passes in detail; of those of one step's closure, one
        self.lines: set[Place] = set()  # that have run a pass or a step
        self.reads_values = True  # of gradients: at first, and where the script writes to them
        self.writes = False  # the script writes to gradients in place

    def is_elsewhere(self) -> bool:
        """Return whether this is another thread, and not one of autograd's own at work on a watched pass."""
        of_autograd = self.call and isinstance(threading.current_thread(), threading._DummyThread)
        return self.thread not in (None, threading.get_ident()) and not of_autograd

    def is_watched(self) -> bool:
        """Return whether what the script computes here is watched."""
        return not (self.call or torch.compiler.is_compiling() or self.is_elsewhere())
