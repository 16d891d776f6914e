"""The ledger of gradients: which passes each `.grad` is the sum of, and who used them.

What it holds follows from the sequence of events alone.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass, field

from gradient_audit import trace
from gradient_audit.trace import Event


@dataclass
class Balance:
    """What is known of the gradient of one parameter."""

    passes: Set[int] = frozenset()  # that it is the sum of
    zero: bool = False  # it was all zeros when it was first seen
    fresh: bool = False  # a pass has added to it since the last step
    borrowed: bool = False  # it is another parameter's, as that of a replica
    stepped: bool = False  # an optimizer stepped while the parameter required a gradient
    by_hand: bool = False  # the script wrote what it computed from gradients to the parameter
    clips: Set[Hashable] = frozenset()  # the lines that have changed it
    clipped: Set[int] = frozenset()  # the passes whose gradient that was


@dataclass
class Ledger:
    """The balance of each account. Parameters and passes are numbers, lines are whatever names them."""

    balances: dict[int, Balance] = field(default_factory=lambda: defaultdict(Balance))
    clips: dict[Hashable, str] = field(default_factory=dict)  # see `clip`, and "scaled" if it was unscaled after
    skipped: set[int] = field(default_factory=set)  # passes whose step GradScaler skips
    lent: set[int] = field(default_factory=set)  # passes whose gradients a step on other parameters used

    def fold(self, event: Event) -> dict[frozenset, set[int]]:
        """Take in an event; return, of a step, the accounts by the passes that their gradients are the sum of."""
        match event:
            case trace.GradientsGone():
                self.vanish(event.parameters)
            case trace.GradientReplaced():
                self.exchange(event.parameter, event.zero, event.calls, event.borrowed)
            case trace.Pass():
                zeros = {number: number in event.zeros for number in event.reached - event.dropped}
                self.add(event.number, zeros, event.dropped)
            case trace.Step():
                zeros = {number: number in event.empty for number in event.with_gradient}
                return self.step(event.parameters, event.trained, zeros, event.inside)
            case trace.HandStep():
                sums: dict[frozenset, set[int]] = defaultdict(set)
                for number in event.parameters:
                    balance = self.balances[number]
                    balance.by_hand = True
                    self._use_clip(balance, event.calls)
                    sums[frozenset(balance.passes)].add(number)
                return sums
            case trace.Clipped():
                self.clip(event.place, event.parameters, event.fate)
            case trace.Unscaled():
                for balance in map(self.balances.__getitem__, event.parameters):
                    if balance.clipped & balance.passes:
                        self.clips |= dict.fromkeys(balance.clips, "scaled")
            case trace.Overflowed():
                self.skipped |= set().union(*(self.balances[number].passes for number in event.parameters))
        return {}

    def vanish(self, accounts: Set[int]) -> None:
        """Note that there is no gradient."""
        for account in accounts:
            self.balances[account].passes = frozenset()

    def exchange(self, account: int, zero: bool, passes: Set[int] | None, borrowed: bool = False) -> None:
        """Note that the gradient is another tensor. passes: that it was computed from; None: not known."""
        balance = self.balances[account]
        balance.zero = zero
        if passes is not None:
            balance.passes, balance.borrowed = frozenset(passes), borrowed
        elif not balance.fresh:
            balance.passes = frozenset()

    def is_cleared(self, account: int, zero: bool, written: bool, stepping: bool) -> bool:
        """Return whether a gradient that was read was cleared before. written: since the last look.

        What was all zeros before was cleared if a pass comes next, and clipped or unscaled if a step comes next.
        """
        return zero and (not self.balances[account].zero or (written and not stepping))

    def add(self, number: int, zeros: Mapping[int, bool], dropped: Set[int] = frozenset()) -> None:
        """Note what a pass added to. zeros: whether it is all zeros. dropped: accounts whose hook has cleared it."""
        self.vanish(dropped)
        for account, zero in zeros.items():
            balance = self.balances[account]
            balance.passes, balance.fresh, balance.zero = balance.passes | {number}, True, zero

    def step(self, accounts: Set[int], trained: Set[int], zeros: Mapping[int, bool], inside: int | None = None) -> dict:
        """Note the step of an optimizer on accounts; return these by the passes that it uses.

        trained: those that require a gradient. zeros: of those that have one, whether no pass is known and it is all
        zeros. inside: the pass that runs, in a hook of the script's.
        """
        sums: dict[frozenset, set[int]] = defaultdict(set)
        borrowed: set[int] = set()
        for account in accounts:
            balance = self.balances[account]
            balance.stepped |= account in trained
            balance.fresh = False
            if account in zeros:
                passes = frozenset(balance.passes | ({inside} - {None}))
                borrowed |= passes if balance.borrowed else set()
                self._use_clip(balance, passes)
                if passes or not zeros[account]:
                    sums[passes].add(account)
        self.lent |= borrowed
        for balance in self.balances.values() if borrowed else ():  # whose gradients the step got from others
            self._use_clip(balance, borrowed)
        return sums

    def _use_clip(self, balance: Balance, passes: Set[int]) -> None:
        if balance.clipped & passes:
            self.clips |= {place: "used" for place in balance.clips if self.clips[place] != "scaled"}

    def clip(self, place: Hashable, accounts: Set[int], fate: str = "") -> None:
        """Note a line that clips gradients, or writes to them.

        fate: "used" by a step, "edited" after one, "empty" if it was given none, "" until a step comes.
        """
        if "empty" in (fate, self.clips.get(place, "empty")):
            self.clips[place] = fate
        for balance in map(self.balances.__getitem__, accounts):
            earlier = balance.clips if balance.clipped & balance.passes else frozenset()
            balance.clips, balance.clipped = earlier | {place}, balance.passes
