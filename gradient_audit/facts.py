"""What rules ask of a trace: who holds what, where gradients went, what steps used."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from gradient_audit.history import Call, ForwardRow, History, Row, StepRow, TermRow
from gradient_audit.ledger import Balance
from gradient_audit.places import Place
from gradient_audit.steps import steps_of
from gradient_audit.trace import Ended, Network, Optimizer, ParameterFound, Step, Trace

AGAINST = -0.9  # a cosine; two losses of other directions are usual
Answer = TypeVar("Answer")


class Facts:
    """What the judgement asks of a trace."""

    def __init__(self, trace: Trace):
        self.history = History(trace.events)
        self.passes = self.history.passes
        self.forwards = [*self.history.forwards.values()]
        self.networks = {network.name: network for network in self.of(Network)}
        self.optimizers = {optimizer.number: optimizer for optimizer in self.of(Optimizer)}
        self.parameters = {name: network.parameters for name, network in self.networks.items()}  # names by number
        self.end = next(iter(self.of(Ended)), Ended())
        balances = self.history.ledger.balances
        self.balances = {found.number: balances.get(found.number, Balance()) for found in self.of(ParameterFound)}
        self.stepped = {number for number, balance in self.balances.items() if balance.stepped}  # by an optimizer
        self.steps = steps_of(self.history, self.stepped)
        for call in self.history.calls.values():
            self._fill_cells(call)
        self.events = self._shown_rows()
        self._answers: dict[Callable, object] = {}

    def of(self, kind: type) -> list:
        """Return the events of one type."""
        return self.history.events.get(kind, [])

    def once(self, question: "Callable[[Facts], Answer]") -> Answer:
        """Return the answer to a question that several rules have, computed once."""
        if question not in self._answers:
            self._answers[question] = question(self)
        return self._answers[question]

    def _shown_rows(self) -> list[Row]:
        """Return the rows of networks, without modules inside of them, and without empty steps."""
        modules = {network.module: name for name, network in self.networks.items()}
        forwards = self.history.forwards
        own = {number for number, row in forwards.items() if row.event.module in modules}
        inner = set().union(*(forwards[number].event.inside for number in own)) - own
        shown: dict[int, Row] = {}  # by the number of the forward pass, or another one
        for row in self.history.rows:
            if isinstance(row, ForwardRow):
                event = row.event
                names = [modules[event.module]] if event.module in modules else []
                names = names or self.networks_of(event.parameters)
                row.cells = dict.fromkeys(self.parameters, "-") | dict.fromkeys(names, "here")
                hidden = event.number in inner or (event.number not in own and event.inside & shown.keys())
                if names and not hidden:
                    shown[event.number] = row
            elif isinstance(row, StepRow):
                numbers = row.parameters if row.event else row.parameters - self.stepped
                row = replace(row, kind="step", parameters=numbers, cells=self.words(numbers, set(), "here"))
                if numbers:
                    shown[-len(shown) - 1] = row
            else:
                if not isinstance(row, Call):
                    row.cells = self.words(row.parameters, set(), "here")
                shown[-len(shown) - 1] = row
        return [*shown.values()]

    def _fill_cells(self, call: Call) -> None:
        reached = call.reached if call.is_pass else call.began.crossed
        call.cells = self.words(reached, call.used, "wasted" if call.is_pass else "read")
        for name in self.networks_of(call.used):
            count, of = len(call.used & self.parameters[name].keys()), len(self.parameters[name])
            if count < of:
                call.parts[name] = f"used {count} of {of}"
        for row in call.terms:
            row.cells = self.words(reached & row.term.reached, call.used & row.term.reached, "wasted")
        for name in self.networks_of(number for row in call.terms for number in row.term.measured):
            _weigh(call.terms, name, self.parameters[name].keys())

    def words(self, reached: Set[int], used: Set[int], word: str) -> dict[str, str]:
        """Return the cells: "used", or `word` for what was reached and not used."""
        cells = dict.fromkeys(self.parameters, "-") | dict.fromkeys(self.networks_of(reached), word)
        return cells | dict.fromkeys(self.networks_of(used), "used")

    @cached_property
    def moved_parameters(self) -> set[int]:
        """The parameters that had a gradient in a step."""
        return set().union(*(steps.moved_parameters for steps in self.steps.values()))

    @cached_property
    def without_gradient(self) -> dict[str, set[int]]:
        """By network: the parameters that had no gradient in any step of their optimizer."""
        still = self.stepped - self.moved_parameters
        return {network: missing for network, ids in self.parameters.items() if (missing := ids.keys() & still)}

    @cached_property
    def most_steps(self) -> int:
        """The steps of the optimizer with the most."""
        return max((steps.places.total() for steps in self.steps.values()), default=0)

    @cached_property
    def owned(self) -> set[int]:
        """The parameters that any optimizer holds."""
        return set().union(*(optimizer.parameters for optimizer in self.optimizers.values()))

    @cached_property
    def owned_leaves(self) -> set[int]:
        """The plain tensors that any optimizer holds."""
        return set().union(*(optimizer.leaves for optimizer in self.optimizers.values()))

    @cached_property
    def owned_in_steps(self) -> set[int]:
        """The parameters that an optimizer held in a step."""
        return set().union(*(step.parameters for step in self.of(Step)))

    @cached_property
    def rows(self) -> dict[tuple, list[tuple[Call, TermRow]]]:
        """The terms of losses, as the table has them."""
        rows: dict[tuple, list[tuple[Call, TermRow]]] = defaultdict(list)
        for p in self.passes:
            for index, term in enumerate(p.terms):
                rows[p.place, len(p.terms), index].append((p, term))
        return rows

    @cached_property
    def last_split(self) -> dict[Place, Call]:
        """By line: the last pass that was watched in detail."""
        return {p.place: p for p in self.passes if p.split}

    @cached_property
    def read_lines(self) -> set[Place]:
        """The lines of passes whose gradients the script read; of the last one in detail, the reading is not seen."""
        return {p.place for p in self.passes if "read" in p.read}

    @cached_property
    def lent_lines(self) -> set[Place]:
        """The lines of passes whose gradients steps on other parameters used."""
        return {p.place for p in self.passes if p.used - p.reached}

    @cached_property
    def handed_lines(self) -> set[Place]:
        """Lines whose gradients other parameters' steps use, or the script copies."""
        return self.lent_lines | {p.place for p in self.passes if "copied" in p.read}

    def in_detail(self, p: Call) -> Call:
        """Return the pass, or another one of its line that was watched in detail, if there is one."""
        return p if p.split else self.last_split.get(p.place, p)

    def held_by(self, optimizer: int) -> tuple[int, ...]:
        """Return the parameters that an optimizer holds, in their order; none of a step by hand."""
        return self.optimizers[optimizer].parameters if optimizer in self.optimizers else ()

    def holders_of(self, network: str) -> list[int]:
        """Return the numbers of the optimizers that hold a parameter of the network."""
        parameters = self.parameters[network].keys()
        return [key for key, optimizer in self.optimizers.items() if parameters & {*optimizer.parameters}]

    def leads_through(self, p: Call, name: str, other: str) -> bool:
        """Whether the gradient goes to the other network through the output of this one."""
        outputs, ids = self.in_detail(p).began.outputs, self.parameters[other].keys()
        return any(reached & ids for _, module, reached in outputs if module == self.networks[name].module)

    def is_fed_by(self, p: Call, other: str) -> bool:
        """Whether the loss was computed from what the network computed, and has no graph to it."""
        inside = any(module == self.networks[other].module for _, module, _ in p.began.outputs)
        ids = self.parameters[other].keys()
        return bool(p.began.sources & ids) and not (inside or p.reached & ids)

    def leads_on(self, p: Call, network: str) -> bool:
        """Whether the gradient goes on, through the network, to another one that the pass moved."""
        return any(self.leads_through(p, network, name) for name in self.networks_of(p.used) if name != network)

    def networks_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the networks that hold any of these parameters."""
        numbers = {*numbers}
        return tuple(name for name, ids in self.parameters.items() if not ids.keys().isdisjoint(numbers))

    def count_of(self, numbers: set[int], network: str | None = None) -> str:
        """Return how many parameters, and which: "2 of the 4 parameters (0.weight, 0.bias)" or "all parameters"."""
        names = {k: v for n, ids in self.parameters.items() if network in (None, n) for k, v in ids.items()}
        chosen = [name for key, name in names.items() if key in numbers]
        if len(chosen) == len(names):
            return "all parameters"
        first = ", ".join(chosen[:3]) + (", ..." if len(chosen) > 3 else "")
        return f"{len(chosen)} of the {len(names)} parameters ({first})"


def _weigh(rows: list[TermRow], network: str, ids: Set[int]) -> None:
    """Fill in the share of each measured term in a network, and whether it goes against the sum of the others."""
    pairs = [(row, [row.term.measured[n] for n in row.term.measured.keys() & ids]) for row in rows]
    sums = [(row, *map(sum, zip(*numbers, strict=True))) for row, numbers in pairs if numbers]
    norms, total = sum(math.sqrt(square) for _, square, _ in sums), sum(product for *_, product in sums)
    for row, square, product in sums:
        others = math.sqrt(max(total - 2 * product + square, 0))  # the norm of |all - one|
        row.shares[network] = math.sqrt(square) / (norms or 1)
        if product - square < AGAINST * math.sqrt(square) * others:
            row.against.add(network)
