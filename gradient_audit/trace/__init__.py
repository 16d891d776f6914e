"""The trace: what happened, as frozen events of plain data. `watch` adds them, `facts` reads them.

An event is complete when it is added; what is learned later is another event. Parameters, other leaves, modules and
optimizers are numbers, counted together; what builds a graph (forward passes and calls of autograd) has numbers, too.
"""

from dataclasses import dataclass, field

from gradient_audit.trace.ends import *
from gradient_audit.trace.event import NONE, OTHER, Event, Numbers
from gradient_audit.trace.gradients import *
from gradient_audit.trace.graphs import *

MOST_PASSES = 10_000  # that are watched at all: it bounds the memory of an audit


@dataclass
class Trace:
    """All events, in their order."""

    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Add an event. There is no other way into the trace."""
        self.events.append(event)
