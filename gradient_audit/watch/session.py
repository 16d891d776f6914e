"""What those who watch share: the trace and its history, the guard, and what runs now."""

import functools
import threading
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count

import torch
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.history import History
from gradient_audit.places import Place
from gradient_audit.trace import Event, Trace
from gradient_audit.watch.frames import Lines, current_lines
from gradient_audit.watch.guard import Guard

DETAILED = 12  # backward passes with forward passes, terms and lines of operations: two rounds of WGAN's five and one
MOST_DETAILED = 100  # likewise, while gradients wait for a step or a reading: small layers take thirty times as long
AGAIN = 4  # likewise, after a line has run a pass or a step for the first time
WITHOUT_STEP = 2 * DETAILED  # likewise, if no step comes: else the detail ends with one, and no step is seen by half


@dataclass(eq=False)
class Running:
    """A call of autograd, while it runs and as long as its gradients may be used."""

    number: int
    kind: str
    place: Place
    create_graph: bool = False
    keeps_graph: bool = False
    lines: Lines = field(default_factory=current_lines)  # that called for it
    nodes: set[int] = field(default_factory=set)  # that it goes through, by sequence number
    reached: set[int] = field(default_factory=set)  # parameters whose gradients it has added to
    leaves: list[weakref.ref] = field(default_factory=list)  # others
    keeper: Lines = ()  # the last line that computed on from its graph
    raised: bool = False


class Activity:
    """What runs at this moment, and the passes that were watched in detail."""

    def __init__(self):
        self.thread: int | None = None  # the one that is watched; None: the first that trains
        self.choice = threading.Lock()  # of the thread: several may begin to train at once
        self.call: Running | None = None  # of autograd
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


class Session:
    """One audit, as all who watch for it know it."""

    def __init__(self):
        self.trace, self.history, self.guard, self.activity = Trace(), History(), Guard(), Activity()
        self.ledger = self.history.ledger
        self.hooks = ExitStack()  # removes them
        self.things = count(1)
        self.built = count()  # numbers of forward passes and calls
        # Of modules, optimizers, parameters, other leaves, and memory that was changed.
        self.numbers = WeakIdKeyDictionary()
        self.calls: dict[int, Running] = {}  # that were watched in detail
        self.shared = functools.cache(frozenset)  # returns one object for equal sets: a long training has few of them

    def add(self, event: Event) -> dict:
        """Add an event to the trace; return what the ledger says of it."""
        self.trace.add(event)
        return self.history.add(event)

    def number_of(self, thing: object) -> int:
        """Return the number of a module, an optimizer or a tensor; a new one, if it has none."""
        if thing not in self.numbers:
            self.numbers[thing] = next(self.things)
        return self.numbers[thing]
