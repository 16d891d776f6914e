"""The ledger of gradients: which passes each `.grad` is the sum of, and who used them.

What it holds follows from the sequence of events alone.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Set
from dataclasses import dataclass, field

from gradient_audit import trace
from gradient_audit.trace import Event


@dataclass
class Balance:
    """What is known of the gradient of one parameter."""

    passes: Set[int] = frozenset()  # that it is the sum of
    zero: bool = False  # it was all zeros when it was first seen
    fresh: bool = False  # a pass has added to it since the last step
    newest: int = 0  # of the passes whose sum a step used
    borrowed: bool = False  # it is another parameter's, as that of a replica
    stepped: bool = False  # an optimizer stepped while the parameter required a gradient
    by_hand: bool = False  # the script wrote what it computed from gradients to the parameter
    clips: Set[Hashable] = frozenset()  # the lines that have changed it
    clipped: Set[int] = frozenset()  # the passes whose gradient that was


@dataclass
class Ledger:
    """The balance of each parameter. Parameters and passes are numbers, lines are whatever names them."""

    balances: dict[int, Balance] = field(default_factory=lambda: defaultdict(Balance))
    clips: dict[Hashable, str] = field(default_factory=dict)  # see `Clipped`, and "scaled" if it was unscaled after
    late: Counter = field(default_factory=Counter)  # by line: calls that clipped only what a step had used already
    skipped: set[int] = field(default_factory=set)  # passes whose step GradScaler skips
    lent: set[int] = field(default_factory=set)  # passes whose gradients a step on other parameters used

    def fold(self, event: Event) -> dict[frozenset, set[int]]:
        """Take in an event; return, of a step, the parameters by the passes that their gradients are the sum of."""
        match event:
            case trace.GradientReplaced():
                balance = self.balances[event.parameter]
                balance.zero = event.zero
                if event.calls is not None:
                    # What steps used, and was cleared, comes from a tensor of the script's own, as a momentum.
                    cleared = frozenset() if event.borrowed else event.calls - balance.passes
                    kept = {number for number in cleared if number <= balance.newest}
                    balance.passes, balance.borrowed = frozenset(event.calls - kept or event.calls), event.borrowed
                elif not balance.fresh:
                    balance.passes = frozenset()
            case trace.Pass():
                for number in event.dropped:
                    self.balances[number].passes = frozenset()
                for number in event.reached - event.dropped:
                    balance = self.balances[number]
                    balance.passes, balance.fresh = balance.passes | {event.number}, True
                    balance.zero = number in event.zeros
            case trace.Step():
                return self._step(event)
            case trace.HandStep():
                sums: dict[frozenset, set[int]] = defaultdict(set)
                for number in event.parameters:
                    balance = self.balances[number]
                    balance.by_hand = True
                    self._use_clip(balance, event.calls)
                    sums[frozenset(balance.passes)].add(number)
                return sums
            case trace.Clipped():
                if "empty" in (event.fate, self.clips.get(event.place, "empty")):
                    self.clips[event.place] = event.fate
                balances = [self.balances[number] for number in event.parameters]
                self.late[event.place] += not event.fate and all(b.passes and not b.fresh for b in balances)
                for balance in balances:
                    earlier = balance.clips if balance.clipped & balance.passes else frozenset()
                    balance.clips, balance.clipped = earlier | {event.place}, balance.passes
            case trace.Unscaled():
                for balance in map(self.balances.__getitem__, event.parameters):
                    if balance.clipped & balance.passes:
                        self.clips |= dict.fromkeys(balance.clips, "scaled")
                self.skipped |= set().union(*(self.balances[number].passes for number in event.infinite))
        return {}

    def is_cleared(self, parameter: int, zero: bool, written: bool, stepping: bool) -> bool:
        """Return whether a gradient that was read was cleared before. written: since the last look.

        What was all zeros before was cleared if a pass comes next, and clipped or unscaled if a step comes next.
        """
        return zero and (not self.balances[parameter].zero or (written and not stepping))

    def _step(self, event: trace.Step) -> dict[frozenset, set[int]]:
        sums: dict[frozenset, set[int]] = defaultdict(set)
        borrowed: set[int] = set()
        for number in event.parameters:
            balance = self.balances[number]
            balance.stepped |= number in event.trained
            balance.fresh = False
            if number in event.with_gradient:
                passes = frozenset(balance.passes | ({event.inside} - {None}))
                balance.newest = max(passes, default=balance.newest)
                borrowed |= passes if balance.borrowed else set()
                self._use_clip(balance, passes)
                if passes or number not in event.empty:
                    sums[passes].add(number)
        self.lent |= borrowed
        for balance in self.balances.values() if borrowed else ():  # whose gradients the step got from others
            self._use_clip(balance, borrowed)
        return sums

    def _use_clip(self, balance: Balance, passes: Set[int]) -> None:
        if balance.clipped & passes:
            self.clips |= {place: "used" for place in balance.clips if self.clips[place] != "scaled"}
