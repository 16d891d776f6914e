"""The trace, put together: a row for each thing that happened, with what later events say of it."""

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from gradient_audit import trace
from gradient_audit.ledger import Ledger
from gradient_audit.places import Place
from gradient_audit.trace import NONE, Event, Term

HAND = 0  # for the number of an optimizer: a step by hand


@dataclass(eq=False)
class Row:
    """Something that happened: "forward", "backward", "grad" (autograd.grad), "step", "hand" or "zero_grad".

    `cells` has a word for each network, "-" for none. Of a backward pass: "used" (an optimizer stepped on some of it)
    or "wasted" (cleared, or left over without a step). Of autograd.grad: "read". Of the others: "here".
    """

    kind: str
    place: Place
    parameters: Set[int] = NONE  # that it concerns; of a call, see `reached`
    cells: dict[str, str] = field(default_factory=dict)
    callers: tuple[Place, ...] = ()
    detail: int = 0  # how often the watching in detail had begun or ended: it was on while that is odd


@dataclass(eq=False)
class TermRow:
    """A term of the loss of a pass, with its cells and shares."""

    term: Term
    cells: dict[str, str] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)  # by network: of the sum of the norms of all terms
    against: set[str] = field(default_factory=set)  # networks where it goes against the sum of the others
    crossed_by: set[int] = field(default_factory=set)  # other calls that go through its node
    counted_by: set[int] = field(default_factory=set)  # those that go through all of it, where it is one number
    dead: bool = False

    @property
    def place(self) -> Place | None:
        """Where the term was computed, if that was seen."""
        return self.term.place

    def word(self, network: str) -> str:
        """Return the cell of a network, with the term's share: "used 97%"."""
        if self.cells[network] not in ("used", "wasted") or network not in self.shares:
            return self.cells[network]
        share = self.shares[network]
        percent = f"{share:.0%}" if share >= 0.01 or not share else "<1%"
        against = " against" if network in self.against else ""
        return f"{self.cells[network]} {percent}{against}"


@dataclass(eq=False)
class BuiltRow(Row):
    """What builds a graph."""

    needed: bool = False  # whether a backward pass came through it, or it is one of an autograd.Function's own
    gone: bool = False  # whether the graph no longer exists


@dataclass(eq=False)
class Call(BuiltRow):
    """A call of autograd."""

    began: trace.PassBegan | None = None
    reached: set[int] = field(default_factory=set)  # the parameters whose gradients it added to
    leaves: Set[int] = NONE  # others
    raised: bool = False
    read: set[str] = field(default_factory=set)  # how the script computed from its gradients
    derived_from: set[Place] = field(default_factory=set)  # the lines of calls whose gradients its loss is made of
    keeper: Place | None = None  # the last line that computed on from its graph afterwards
    terms: list[TermRow] = field(default_factory=list)
    users: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # by optimizer: the parameters
    parts: dict[str, str] = field(default_factory=dict)  # for the table: "used 2 of 4", by network

    @property
    def number(self) -> int:
        """Its number among what builds graphs."""
        return self.began.number

    @property
    def is_pass(self) -> bool:
        """Whether it is a backward pass, or its result became a gradient."""
        return self.kind == "backward" or bool(self.reached)

    @property
    def split(self) -> bool:
        """Whether its loss was split into terms."""
        return self.kind == "backward" and self.began.detailed

    @property
    def measured(self) -> bool:
        """Whether the gradients of its terms were measured."""
        return any(row.term.measured for row in self.terms)

    @property
    def used(self) -> set[int]:
        """The parameters whose gradients a step used."""
        return set().union(*self.users.values())


@dataclass(eq=False)
class ForwardRow(BuiltRow):
    """A forward pass."""

    event: trace.Forward | None = None
    has_scalar: bool = False  # whether a number with a graph was computed from its output
    directions: dict[int, float] = field(default_factory=dict)  # by pass: of the gradient of its output
    in_loss: Call | None = None  # the last one whose loss has its output in its graph


@dataclass(eq=False)
class StepRow(Row):
    """A step of an optimizer, or by hand."""

    event: trace.Step | None = None
    sums: dict[frozenset, set[int]] = field(default_factory=lambda: defaultdict(set))  # parameters, by passes
    # Of one by hand: parameters, by the passes whose sum their gradients are.
    added: dict[frozenset, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def optimizer(self) -> int:
        """The number of the optimizer, or HAND."""
        return self.event.optimizer if self.event else HAND


class History:
    """The rows of a trace, and its other events by their type."""

    def __init__(self, events: Iterable[Event] = ()):
        self.ledger = Ledger()
        self.rows: list[Row] = []
        self.calls: dict[int, Call] = {}
        self.forwards: dict[int, ForwardRow] = {}
        self.passes: list[Call] = []  # a call of autograd.grad when its result became a gradient
        self.events: dict[type, list] = defaultdict(list)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> dict[frozenset, set[int]]:
        """Add a row, or note what an event says of an earlier one; return what the ledger says of it."""
        sums, row = self.ledger.fold(event), None
        self.events[type(event)].append(event)
        match event:
            case trace.Forward():
                row = ForwardRow("forward", event.place, callers=event.callers, event=event)
                self.forwards[event.number] = row
            case trace.PassBegan():
                row = Call(event.kind, event.place, callers=event.callers, needed=event.for_adjoint, began=event)
                row.terms = [*map(TermRow, event.terms)]
                self.calls[event.number] = row
                if row.is_pass:
                    self.passes.append(row)
                for number, *_ in event.outputs:
                    self.forwards[number].in_loss = row
            case trace.Step():
                row = StepRow("step", event.place, event.with_gradient, event=event, sums=sums)
            case trace.HandStep():
                row = self.rows[-1] if self.rows else None
                if event.alone or not row or (row.kind, row.place) != ("hand", event.place):
                    row = StepRow("hand", event.place)
                row.parameters = row.parameters | event.parameters
                row.sums[frozenset(event.calls)] |= event.parameters
                for passes, numbers in sums.items():
                    row.added[passes] |= numbers
            case trace.ZeroGrad():
                row = Row("zero_grad", event.place, event.parameters)
                if event.lost and isinstance(step := self.rows[-1], StepRow):  # which comes to use nothing of these
                    step.parameters = step.parameters - event.lost
                    step.sums = {passes: rest for passes, ids in step.sums.items() if (rest := ids - event.lost)}
                    self.rows[-1:] = [row, step]
            case trace.Pass():
                call = self.calls[event.number]
                call.raised, call.leaves = event.raised, event.leaves
                call.reached |= event.reached
            case trace.GradientReplaced():
                for call in (self.calls[number] for number in sorted(event.calls or ())):
                    if not call.is_pass:
                        self.passes.append(call)
                    if call.kind == "grad":
                        call.reached.add(event.parameter)
            case trace.GradientRead():
                self.calls[event.number].read.add(event.how)
            case trace.GraphExtended() if event.number in self.calls:  # else a mode re-dispatches a forward pass
                self.calls[event.number].keeper = event.place
            case trace.TermCrossed():
                term = self.calls[event.number].terms[event.term]
                term.crossed_by.add(event.by)
                term.counted_by |= {event.by} if event.is_whole else set()
            case trace.ScalarComputed():
                self.forwards[event.forward].has_scalar = True
            case trace.GraphUsed():
                built = self.forwards.get(event.built) or self.calls[event.built]
                built.needed = True
                if event.direction is not None:
                    built.directions[event.number] = event.direction
                elif built.kind == "grad" and event.number is not None:
                    self.calls[event.number].derived_from.add(built.place)
            case trace.Ended():
                for number in event.gone:
                    (self.forwards.get(number) or self.calls[number]).gone = True
        if row and row not in self.rows[-2:]:  # is it there, before a step or as one by hand?
            row.detail = len(self.events[trace.DetailSet])
            self.rows.append(row)
        return sums
