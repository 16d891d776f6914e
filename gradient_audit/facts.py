"""What the findings are made from: who holds what, where gradients went, what steps used; the cells of the table."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from torch import nn

from gradient_audit.graph import parameters_of
from gradient_audit.ledger import Balance
from gradient_audit.places import Place
from gradient_audit.record import CLIMB, HAND, Event, Pass, Record, Step, Term

AGAINST = -0.9  # a cosine; two losses of other directions are usual


class Facts:
    """What the judgement asks the record for."""

    def __init__(self, record: Record, networks: dict[str, nn.Module], ended: bool):
        self.record, self.optimizers, self.networks, self.ended = record, record.optimizers, networks, ended
        self.numbers = {  # by network: the numbers of its parameters' accounts, and their names
            name: {record.accounts[id(p)].number: n for n, p in network.named_parameters() if id(p) in record.accounts}
            for name, network in networks.items()
        }
        self.inside = set().union(*self.numbers.values())  # the accounts in any network
        balances = record.ledger.balances
        self.balances = {a.number: balances.get(a.number, Balance()) for a in record.accounts.values()}
        self.stepped = {number for number, balance in self.balances.items() if balance.stepped}  # by an optimizer
        self.steps, users = steps_of(record, self.stepped)
        self.fed = set().union(*(steps.fed for steps in self.steps.values()))
        self.events = self.complete(users)
        self.passes = sorted((e for e in self.events if getattr(e, "number", None) is not None), key=lambda p: p.number)
        self.rows: dict[tuple, list[tuple[Pass, Term]]] = defaultdict(list)  # terms of losses, as the table has them
        for p in self.passes:
            for index, term in enumerate(p.terms):
                self.rows[p.place, len(p.terms), index].append((p, term))
        self.most_steps = max((steps.places.total() for steps in self.steps.values()), default=0)
        # By optimizer: the accounts of its parameters, in their order. And all that any holds, also plain tensors.
        held = {number: record.accounts_of(parameters_of(o)) for number, o in self.optimizers.items()}
        self.accounts_of = {number: [account.number for account, _ in pairs] for number, pairs in held.items()}
        self.owned = set().union(*self.accounts_of.values())
        self.held = {id(p) for optimizer in self.optimizers.values() for p in parameters_of(optimizer)}
        self.last_detailed = {p.place: p for p in self.passes if p.detailed}
        self.read = {p.place for p in self.passes if p.read}  # of the last one in detail, the reading is not seen
        # Lines whose gradients other parameters' steps use, or the script copies.
        self.handed = {p.place for p in self.passes if p.used - p.reached or p.copied}

    def complete(self, users: list[dict]) -> list[Event]:
        """Return copies of the events, with cells and users, without modules beside the networks, and empty steps."""
        ids = {id(network) for network in self.networks.values()}
        own = {id(event) for event in self.record.forwards if id(event.module()) in ids}
        inner = {id(part) for event in self.record.forwards if id(event) in own for part in event.parts} - own
        kept: dict[int, Event] = {}  # by the id of the original
        for event in self.record.events:
            if event.kind == "forward":
                module = event.module()
                if id(event) in inner or (id(event) not in own and any(id(part) in kept for part in event.parts)):
                    continue
                held = self.record.numbers_of(nn.Module.parameters(module)) if module is not None else set()
                names = [name for name, network in self.networks.items() if network is module] or self.networks_of(held)
                done = replace(event, cells=dict.fromkeys(self.numbers, "-") | dict.fromkeys(names, "here"))
            elif isinstance(event, Pass):
                done = replace(event, users=users[event.number] if event.number is not None else {})
                done.cells = self.words(event.reached, done.used, "read" if event.number is None else "wasted")
                counts = {n: (len(done.used & ids.keys()), len(ids)) for n, ids in self.numbers.items()}
                done.parts = {n: f"used {c} of {of}" for n, (c, of) in counts.items() if 0 < c < of}
                cells = [self.words(event.reached & t.reached, done.used & t.reached, "wasted") for t in event.terms]
                pairs = zip(event.terms, cells, strict=True)
                done.terms = [replace(term, cells=words, shares={}, against=set()) for term, words in pairs]
                self.weigh(done.terms)
            else:
                reached = event.reached - self.stepped if event.kind == "hand" else event.reached
                kind = "step" if event.kind == "hand" else event.kind
                done = replace(event, kind=kind, reached=reached, cells=self.words(reached, set(), "here"))
            if (done.kind != "step" or done.reached) and (done.kind != "forward" or "here" in done.cells.values()):
                kept[id(event)] = done
        return [*kept.values()]

    def weigh(self, terms: list[Term]) -> None:
        """Fill in the share of each measured term in each network, and where it goes against the sum of the others."""
        for name, ids in self.numbers.items():
            measured = [(t, [t.measured[n] for n in t.measured.keys() & ids.keys()]) for t in terms]
            sums = [(t, *map(sum, zip(*pairs, strict=True))) for t, pairs in measured if pairs]
            norms, total = sum(math.sqrt(square) for _, square, _ in sums), sum(product for *_, product in sums)
            for term, square, product in sums:
                others = math.sqrt(max(total - 2 * product + square, 0))  # the norm of |all - one|
                term.shares[name] = math.sqrt(square) / (norms or 1)
                term.against |= {name} if product - square < AGAINST * math.sqrt(square) * others else set()

    def words(self, reached: Set[int], used: Set[int], word: str) -> dict[str, str]:
        """Return the cells: "used", or `word` for what was reached and not used."""
        cells = dict.fromkeys(self.numbers, "-") | dict.fromkeys(self.networks_of(reached), word)
        return cells | dict.fromkeys(self.networks_of(used), "used")

    def in_detail(self, p: Pass) -> Pass:
        """Return the pass, or another one of its line that was watched in detail, if there is one."""
        return p if p.detailed else self.last_detailed.get(p.place, p)

    def holders_of(self, network: str) -> list[int]:
        """Return the numbers of the optimizers that hold a parameter of the network."""
        return [key for key, held in self.accounts_of.items() if self.numbers[network].keys() & held]

    def leads_through(self, p: Pass, name: str, other: str) -> bool:
        """Whether the gradient goes to the other network through the output of this one."""
        ids = self.numbers[other].keys()
        return any(reached & ids for module, reached in self.in_detail(p).outputs if module() is self.networks[name])

    def is_fed_by(self, p: Pass, other: str) -> bool:
        """Whether the loss was computed from what the network computed, and has no graph to it."""
        inside = any(module() is self.networks[other] for module, _ in p.outputs)
        ids = self.numbers[other].keys()
        return bool(p.values & ids) and not (inside or p.reached & ids)

    def leads_on(self, p: Pass, network: str) -> bool:
        """Whether the gradient goes on, through the network, to another one that the pass moved."""
        return any(self.leads_through(p, network, name) for name in self.networks_of(p.used) if name != network)

    def networks_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the networks that hold any of these accounts."""
        return tuple(name for name, ids in self.numbers.items() if not ids.keys().isdisjoint(numbers))

    def count_of(self, numbers: set[int], network: str | None = None) -> str:
        """Return how many parameters, and which: "2 of the 4 parameters (0.weight, 0.bias)" or "all parameters"."""
        names = {k: v for n, ids in self.numbers.items() if network in (None, n) for k, v in ids.items()}
        chosen = [name for key, name in names.items() if key in numbers]
        if len(chosen) == len(names):
            return "all parameters"
        first = ", ".join(chosen[:3]) + (", ..." if len(chosen) > 3 else "")
        return f"{len(chosen)} of the {len(names)} parameters ({first})"


@dataclass
class Steps:
    """The steps of one optimizer, or those by hand, `p.data.add_(p.grad, alpha=-lr)`."""

    places: Counter = field(default_factory=Counter)
    fed: set[int] = field(default_factory=set)  # the parameters that had a gradient at least once
    sums: dict[frozenset, tuple[set[int], Place]] = field(default_factory=dict)  # passes: (parameters, step)
    faults: dict[tuple[str, Place, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # kind, where
    bare: int = 0  # steps that found no gradient, since the last one that did
    repeated: set[Place] = field(default_factory=set)  # steps whose gradients had all been used


def steps_of(record: Record, by_optimizers: set[int]) -> tuple[dict[int, Steps], list[dict[int, set[int]]]]:
    """Return the steps by the optimizer's number, and for each pass who used which of its gradients.

    A write by hand is a step if no optimizer steps on the parameter, else a climb before that step.
    """
    found: dict[int, Steps] = defaultdict(Steps)
    users: list[dict[int, set[int]]] = [defaultdict(set) for _ in record.passes]
    first: dict[tuple[int, int], Step] = {}  # by pass and parameter
    for event in record.events:
        if event.kind == "hand":
            for passes, numbers in event.taken.items():
                for number in passes:
                    users[number][HAND] |= numbers - by_optimizers
                    users[number][CLIMB] |= numbers & by_optimizers
            if fed := event.reached - by_optimizers:
                found[HAND].places[event.place] += 1
                found[HAND].fed |= fed
        elif event.kind == "step":
            repeated = all((p, n) in first for passes, numbers in event.taken.items() for p in passes for n in numbers)
            if not (event.inner and repeated):  # as the optimizer inside of another one, SAM's
                _add(found[event.optimizer], event, first, record.passes, users)
                found[event.optimizer].repeated |= {event.place} if repeated else set()
    return dict(found), [{user: numbers for user, numbers in by.items() if numbers} for by in users]


def _add(steps: Steps, event: Step, first: dict, passes: list[Pass], users: list[dict]) -> None:
    steps.places[event.place] += 1
    steps.bare = 0 if event.taken else steps.bare + 1
    for taken, numbers in event.taken.items():
        steps.fed |= numbers
        for p in taken:
            handed = not numbers <= passes[p].reached  # of which, is not known
            users[p][event.optimizer] |= passes[p].reached | numbers if handed else numbers
            for number in numbers:
                before = first.setdefault((p, number), event)
                if before.optimizer != event.optimizer:
                    steps.faults["twice", event.place, before.place].add(number)
                elif before is not event:
                    steps.faults["stale", passes[p].place, event.place].add(number)
        if len(taken) > 1:
            steps.sums.setdefault(taken, (set(), event.place))[0].update(numbers)
            climbed = [p for p in sorted(taken) if users[p].get(CLIMB, set()) & numbers]
            lines = {passes[p].place for p in taken if passes[p].for_inputs}
            by_hand = climbed or [p for p in sorted(taken) if passes[p].place in lines]
            if by_hand and {*taken}.difference(by_hand):
                steps.faults["reused", event.place, passes[by_hand[0]].place] |= numbers
