"""The record of what happened under an audit: plain data, filled by `watch`, read by `judge`."""

import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.ledger import Ledger
from gradient_audit.places import Place

HAND, CLIMB = 0, -1  # for the number of an optimizer: a step by hand, and a write before its step, as SAM's
OTHER = 0  # for the number of an account: a leaf that is in no network


@dataclass
class Term:
    """A term of the loss of a pass: where it was computed, if that was seen, and the networks that it reaches."""

    place: Place | None
    name: str
    node: int = -1  # its sequence number
    value: float | None = None  # of a constant
    sources: int = field(default=0, repr=False)  # of a constant: the parameters that it was computed from, as bits
    reached: set[int] = field(default_factory=set, repr=False)
    cells: dict[str, str] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)  # by network: of the sum of the norms of all terms
    against: set[str] = field(default_factory=set)  # networks where it goes against the sum of the others
    at_zero: bool = False  # its value is zero, and its gradient may be because of that
    # By parameter, if it was measured: the square of its gradient's norm, and the product with that of all terms.
    measured: dict[int, tuple[float, float]] = field(default_factory=dict, repr=False)
    weightless: bool = False  # the loss multiplies it by zero
    dead: bool = False

    def word(self, network: str) -> str:
        """Return the cell of a network, with the term's share: "used 97%"."""
        if self.cells[network] not in ("used", "wasted") or network not in self.shares:
            return self.cells[network]
        share = self.shares[network]
        percent = f"{share:.0%}" if share >= 0.01 or not share else "<1%"
        return f"{self.cells[network]} {percent}" + " against" * (network in self.against)


@dataclass
class Event:
    """Something that happened: "forward", "backward", "grad" (autograd.grad), "step" or "zero_grad".

    `cells` has a word for each network, "-" for none. Of a backward pass: "used" (an optimizer stepped on some of it)
    or "wasted" (cleared, or left over without a step). Of autograd.grad: "read". Of the others: "here".
    """

    kind: str
    place: Place
    reached: set[int] = field(default_factory=set, repr=False)  # parameters, by their account's number
    cells: dict[str, str] = field(default_factory=dict)


@dataclass
class Built(Event):
    """What builds a graph: a forward pass, or a call of autograd with `create_graph`."""

    graph: list[weakref.ref] = field(default_factory=list, repr=False)  # each dies with a node of it
    callers: tuple = field(default=(), repr=False)  # the user's frames, innermost first
    values: set[int] = field(default_factory=set, repr=False)  # parameters behind its result, with a graph or without
    gone: bool = False  # whether the graph no longer exists
    needed: bool = False  # whether a backward pass came through it


@dataclass
class Forward(Built):
    """A forward pass of a module."""

    module: weakref.ref | None = field(default=None, repr=False)
    parts: list["Forward"] = field(default_factory=list, repr=False)  # those inside of it
    scalar: bool = False  # whether a number with a graph was computed from its output
    directions: dict[int, float] = field(default_factory=dict, repr=False)  # by pass: of the gradient of the output
    in_loss: "Pass | None" = None  # the last one whose loss has its output in its graph
    blind: bool = False  # whether it ran under no_grad()
    frozen: bool = False  # whether no parameter of the module required a gradient
    checkpointed: bool = False  # whether it ran inside of a reentrant checkpoint


@dataclass
class Pass(Built):
    """A backward pass or a call of autograd.grad."""

    raised: bool = False
    create_graph: bool = False
    nan: bool = False  # whether its loss is NaN
    keeper: tuple | None = None  # the last line that computed on from its graph afterwards
    keeps: bool = False  # whether it keeps its graph for another pass
    nodes: set[int] = field(default_factory=set, repr=False)  # that it goes through, by sequence number
    named: set[int] = field(default_factory=set, repr=False)  # parameters that `inputs=` names
    number: int | None = None  # among the passes; of autograd.grad if its result became a .grad
    users: dict[int, set[int]] = field(default_factory=dict, repr=False)  # optimizer: parameters; filled by `Facts`
    detailed: bool = False  # whether its loss was split into terms
    terms: list[Term] = field(default_factory=list)
    hooked: bool = False  # whether code of the script's ran in it
    unmeasured: str = ""  # why its terms were not measured
    parts: dict[str, str] = field(default_factory=dict)  # for the table: "used 2 of 4", by network
    outputs: list[tuple[weakref.ref, set[int]]] = field(default_factory=list, repr=False)  # modules, what they lead to
    loose: list[weakref.ref] = field(default_factory=list, repr=False)  # leaves in no network that got a gradient
    cuts: list[tuple] = field(default_factory=list, repr=False)  # behind its loss: (mistake, place)
    added: bool = False  # whether it added to the gradient of such a leaf from which the script had computed
    read: bool = False  # whether the script computed something from the gradients
    copied: bool = False  # likewise, for each element
    for_inputs: bool = False  # likewise, from the gradient of what is no parameter
    functional: bool = False  # whether torch.func called for it

    @property
    def measured(self) -> bool:
        return any(term.measured for term in self.terms)

    @property
    def used(self) -> set[int]:
        return set().union(*self.users.values())


@dataclass
class Step(Event):
    """A step of an optimizer, or a write by hand ("hand", then "step")."""

    optimizer: int = HAND  # its number
    taken: dict[frozenset, Set] = field(default_factory=lambda: defaultdict(set), repr=False)  # parameters, by passes
    inner: bool = False  # whether it runs inside another one
    nan: set[int] = field(default_factory=set, repr=False)  # parameters whose gradients were NaN
    still: set[int] | None = None  # parameters whose gradients were exactly zero; None: not in detail, see `budget`


@dataclass
class Account:
    """A watched parameter, and its gradient as it was at the last look. It keeps no memory of theirs in use."""

    number: int
    parameter: weakref.ref
    grad: weakref.ref | None = None
    version: int = 0
    version_before: int = -1  # of the parameter, before the step that runs; -1: it had no gradient
    hooked: bool = False


@dataclass
class Record:
    """Everything that happened."""

    events: list[Event] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    calls: list[Pass] = field(default_factory=list)  # of autograd that were watched in detail
    forwards: list[Forward] = field(default_factory=list)  # likewise
    accounts: dict[int, Account] = field(default_factory=dict)  # by the id of the parameter
    ledger: Ledger = field(default_factory=Ledger)  # what became of the gradients
    optimizers: dict[int, Optimizer] = field(default_factory=dict)  # by number: the newest that was known by it
    renewed: Counter = field(default_factory=Counter)  # by number: how often it was made anew
    errors: list = field(default_factory=list)  # of autograd: what `mistakes.raised` knows of each
    frozen: dict[int, Place | None] = field(default_factory=dict)  # by account: the `requires_grad_(False)` of a module
    made: WeakIdKeyDictionary = field(default_factory=WeakIdKeyDictionary)  # modules, optimizers, parameters: places
    births: dict[int, Place | None] = field(default_factory=dict)  # by account: the line that made the parameter
    held: set[int] = field(default_factory=set)  # accounts whose parameters an optimizer held in a step
    replaced: dict[int, tuple[Place, set[int]]] = field(default_factory=dict)  # by account: where it replaced which
    lines: set[tuple[str, int]] = field(default_factory=set)  # of the user's, that called for a pass
    whole: dict[int, nn.Module] = field(default_factory=dict)  # by the id of a network: the module it is a part of
    closed: bool = False  # whether the hooks record nothing more
    failure: str = ""  # what raised inside the audit
    # Of GradScaler: passes of losses that it had not multiplied (True), steps on what it had not divided (False).
    scaling: dict[Place, bool] = field(default_factory=dict)
    copied: set[int] = field(default_factory=set)  # accounts to whose parameters the script wrote others, as an average
    nan: Place | None = None  # the line whose result, or gradient, was the first NaN

    def keys_of(self, numbers: Set[int]) -> set[int]:
        return {key for key, account in self.accounts.items() if account.number in numbers}

    def accounts_of(self, parameters: Iterable[Tensor]) -> list[tuple[Account, Tensor]]:
        return [(self.accounts[id(p)], p) for p in parameters if id(p) in self.accounts]

    def numbers_of(self, parameters: Iterable[Tensor]) -> set[int]:
        return {account.number for account, _ in self.accounts_of(parameters)}
