"""Kinds of passes, by the parameters that they reach, and whether a kind still waits for a step."""

from collections import defaultdict

from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.optimizers import Optimizers
from gradient_audit.watch.session import Running
from gradient_audit.watch.tensors import ids_of, parameters_of


class Kinds:
    """Tells whether a script has used all that its passes gave: steps that no hook sees come at their own time."""

    def __init__(self, optimizers: Optimizers, forwards: Forwards):
        self.optimizers, self.forwards = optimizers, forwards
        self.session, self.parameters = forwards.session, forwards.parameters
        self.calls: dict[frozenset[int], list[int]] = defaultdict(list)

    def note(self, call: Running) -> bool:
        """Note a pass that has ended; return whether it is the first of a kind that waits for a step by hand."""
        kind = self.session.shared(frozenset(call.reached))
        if kind and not call.raised:
            self.calls[kind].append(call.number)
        return len(self.calls.get(kind, ())) == 1 and self.waits(kind, by_hand=True)

    def waits(self, kind: frozenset[int], *, by_hand: bool) -> bool:
        """Return whether nothing has read the gradients, or stepped on what only this kind reaches.

        by_hand: a step of an optimizer of PyTorch's, which would be seen, is not waited for.
        """
        balances, calls, own = self.session.ledger.balances, self.session.history.calls, self._own(kind)
        if by_hand and kind & self._owned():
            return False
        stepped = any(balances[number].stepped or balances[number].by_hand for number in own)
        lent = self.session.ledger.lent
        return bool(own) and not stepped and not any(calls[n].read or n in lent for n in self.calls[kind])

    def any_waits(self, *, by_hand: bool) -> bool:
        """Return whether any kind waits."""
        return any(self.waits(kind, by_hand=by_hand) for kind in self.calls)

    def gone_round(self, times: int) -> bool:
        """Return whether a script that steps by hand has come so often to each network that it runs."""
        if not any(balance.by_hand for balance in self.session.ledger.balances.values()):
            return True
        reached = self.parameters.keys_of(frozenset().union(*self.calls))
        ran = map(ids_of, self.forwards.living_modules().values())
        kinds = [kind for kind in self.calls if self._own(kind)]
        return all(ids & reached for ids in ran if ids) and all(len(self.calls[kind]) >= times for kind in kinds)

    def _own(self, kind: frozenset[int]) -> set[int]:
        """Return what only this kind reaches, of the parameters that exist."""
        living = {account.number for account, _ in self.parameters.living()}
        return living & kind.difference(*(other for other in self.calls if other < kind))

    def _owned(self) -> frozenset[int]:
        """Return the parameters that optimizers of PyTorch's hold."""
        return self.parameters.numbers_of(p for one in list(self.optimizers.known) for p in parameters_of(one))
