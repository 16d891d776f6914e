"""The accounts: a number for each watched parameter and optimizer, each `.grad` at the last look, and the steps."""

import functools
import gc
import math
import weakref
from itertools import count

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.graph import has_nan, is_zero, parameters_of, tensors_in
from gradient_audit.guard import guard_hooks, guarded
from gradient_audit.lineage import CALL, PARAMETER, numbers_in
from gradient_audit.places import construction_place, current_place
from gradient_audit.record import Account, Step


@guard_hooks
class Accounts:
    """Opens accounts in the record, and tells its ledger how gradients have changed, and who used them."""

    def __init__(self, watcher: object):
        self.record, self.networks, self.activity = watcher.record, watcher.networks, watcher.activity
        self.lineage, self.hooks, self.watch_again = watcher.lineage, watcher.hooks, watcher.watch_again
        self.scaled: set[int] = set()  # sequence numbers of losses that GradScaler has multiplied
        self.divided: set[int] = set()  # passes whose gradients it has divided
        self.shared = functools.cache(frozenset)  # returns one object for equal sets: a long training has few of them
        self.numbers = count(1)  # of accounts and optimizers
        self.pending = WeakIdKeyDictionary()  # modules that may have parameters without an account
        self.optimizers = WeakIdKeyDictionary()  # the numbers of all that were seen
        self.constructed: dict[tuple, int] = {}  # by line and parameters: the optimizer's number

    def note_parameter(self, parameter: Tensor) -> None:
        self.record.made.setdefault(parameter, current_place())

    def expect(self, *modules: nn.Module) -> None:
        """Note that modules may have new parameters."""
        for module in modules:  # no dict: a user's own `==` may compare them
            self.pending[module] = None

    def open_all(self) -> None:
        pending, self.pending = self.pending, WeakIdKeyDictionary()
        for module in list(pending):
            for parameter in nn.Module.parameters(module):
                if is_lazy(parameter) or not isinstance(parameter, nn.Parameter):  # functional_call puts others there
                    self.pending[module] = None
                else:
                    self.open(parameter)

    def open(self, parameter: Tensor) -> Account:
        """Return the account of a parameter, which is opened if there is none."""
        key, accounts = id(parameter), self.record.accounts
        if (account := accounts.get(key)) is None:
            reference = weakref.ref(parameter, lambda _: accounts.pop(key, None))
            account = accounts[key] = Account(next(self.numbers), reference)
            self.record.births[account.number] = self.record.made.get(parameter)
        if not account.hooked and parameter.requires_grad and parameter.is_leaf:
            account.hooked = True
            self.hooks.callback(parameter.register_post_accumulate_grad_hook(self.note_gradient).remove)
        return account

    def note_gradient(self, parameter: Tensor) -> None:
        """Note that the pass that runs has come to a parameter."""
        given = parameter.grad is not None or len(parameter._post_accumulate_grad_hooks) > 1  # another has used it
        if given and parameter.requires_grad and self.activity.call and not self.activity.is_elsewhere():
            self.activity.call.reached.add(self.record.accounts[id(parameter)].number)

    def look_at_all(self) -> None:
        """Look at the gradients that are the sum of known passes."""
        self.open_all()
        for account in list(self.record.accounts.values()):
            if (parameter := account.parameter()) is not None:
                self.open(parameter)
                if self.record.ledger.balances[account.number].passes:
                    self.look(account, parameter)

    def look(self, account: Account, parameter: Tensor, *, stepping: bool = False) -> None:
        """Compare a gradient with what it was at the last look."""
        grad, number, ledger = parameter.grad, account.number, self.record.ledger
        balance = ledger.balances[number]
        if grad is None:
            ledger.vanish(number)
        elif account.grad is None or account.grad() is not grad or (balance.borrowed and not balance.fresh):
            passes, borrowed = self.passes_behind(grad, number) if self.activity.detailed else (None, False)
            account.grad, account.version = weakref.ref(grad), grad._version
            ledger.exchange(number, is_zero(grad), passes, borrowed)
        elif (written := grad._version != account.version) or self.activity.reads_values:
            self.activity.writes |= ledger.look(number, is_zero(grad), written, stepping) or written

    def passes_behind(self, grad: Tensor, number: int) -> tuple[set[int], bool]:
        """Return the passes that a gradient was computed from, and whether one of them did not reach its parameter.

        A call of autograd.grad becomes a pass.
        """
        calls = [self.record.calls[index] for index in numbers_in(CALL, self.lineage.sources_of(grad))]
        for call in calls:
            if call.number is None:
                call.number, call.reached = len(self.record.passes), set()
                self.record.passes.append(call)
                self.activity.spent += not self.activity.closures
            if call.kind == "grad":
                call.reached.add(number)
        return {call.number for call in calls}, any(number not in call.reached for call in calls)

    def search_optimizers(self) -> None:
        """Find the optimizers that exist, also those that were copied or unpickled."""
        for thing in gc.get_objects():
            if issubclass(type(thing), Optimizer):
                self.number_of(thing)

    @guarded
    def find_optimizers(self) -> list[Optimizer]:
        """Return the optimizers that stepped or hold a watched parameter; wrappers, whose `step` has no hooks, not."""
        self.open_all()
        concerned = {*self.record.accounts, *(id(ref()) for p in self.record.passes for ref in p.loose)}
        for thing in list(self.optimizers):
            if getattr(type(thing).step, "hooked", False) and any(id(p) in concerned for p in parameters_of(thing)):
                self.record.optimizers.setdefault(self.number_of(thing), thing)
        return list(self.record.optimizers.values())

    def number_of(self, optimizer: Optimizer) -> int:
        if optimizer not in self.optimizers:
            self.optimizers[optimizer] = next(self.numbers)
        return self.optimizers[optimizer]

    def note_construction(self, optimizer: Optimizer, *_: object, **__: object) -> None:
        """Give an optimizer the number of an earlier one that was made at the same line for the same parameters."""
        self.record.made[optimizer] = place = construction_place(optimizer)
        self.networks.add_leaves(optimizer)
        self.open_all()
        parameters = frozenset(self.record.numbers_of(parameters_of(optimizer)))
        if parameters and (number := self.constructed.get((place, parameters))):
            self.optimizers[optimizer] = number
            self.record.renewed[number] += 1
            self.record.optimizers[number] = optimizer
        self.constructed[place, parameters] = self.number_of(optimizer)

    def note_clipping(self, parameters: Tensor | list[Tensor], limit: float, *_: object, **__: object) -> None:
        if not math.isfinite(float(limit)):
            return  # asked for the norm
        given = tensors_in(parameters)
        accounts = self.record.accounts_of(given)
        for account, parameter in accounts:
            self.look(account, parameter)
        if accounts or not given:
            fate = "used" if self.activity.steps else "" if given else "empty"  # used: in a hook of the step
            self.record.ledger.clip(current_place(), {account.number for account, _ in accounts}, fate)

    def note_unscaling(self, scaler: torch.amp.GradScaler, optimizer: Optimizer) -> None:
        """Note a call of `GradScaler.unscale_`, by the script or by the scaler's step."""
        record = self.record
        accounts = record.accounts_of(parameters_of(optimizer)) if scaler.is_enabled() else []
        passes = set().union(*(record.ledger.balances[account.number].passes for account, _ in accounts))
        for p in (record.passes[number] for number in passes if scaler.get_scale() != 1):
            if p.detailed and p.kind == "backward" and not p.nodes & self.scaled:
                record.scaling[p.place] = True
        self.divided |= passes
        grads = {account.number: parameter.grad for account, parameter in accounts}
        read = grads.items() if self.activity.detailed else ()
        record.ledger.unscale(grads.keys())
        record.ledger.skip({number for number, grad in read if grad is not None and not grad.isfinite().all()})

    def note_scaling(self, scaler: torch.amp.GradScaler, losses: object) -> None:
        losses = losses if scaler.is_enabled() and scaler.get_scale() != 1 else ()
        self.scaled |= {loss.grad_fn._sequence_nr() for loss in tensors_in(losses) if loss.grad_fn is not None}

    def note_freezing(self, module: nn.Module, *_: object, **__: object) -> None:
        self.open_all()
        parameters = [*nn.Module.parameters(module)]
        place = None if any(parameter.requires_grad for parameter in parameters) else current_place()
        self.record.frozen |= dict.fromkeys(self.record.numbers_of(parameters), place)

    def note_step(self, optimizer: Optimizer) -> None:
        self.open_all()
        ledger, number, place = self.record.ledger, self.number_of(optimizer), current_place()
        accounts = self.record.accounts_of(parameters_of(optimizer))
        held = {account.number: parameter for account, parameter in accounts}
        if getattr(optimizer, "found_inf", False):  # GradScaler calls a fused optimizer's step, which skips it itself
            ledger.skip(held.keys())
            for account, _ in accounts:
                account.version_before = -1
            return
        self.record.optimizers[number] = optimizer
        self.watch_again(place)
        for account, parameter in accounts:
            self.look(account, parameter, stepping=True)
            account.version_before = -1 if parameter.grad is None else parameter._version
        self.record.held |= held.keys()
        grads = {key: parameter.grad for key, parameter in held.items() if parameter.grad is not None}
        # What no pass has filled is read, and counts as a gradient unless it is all zeros.
        zeros = {key: not ledger.balances[key].passes and is_zero(grad) for key, grad in grads.items()}
        trained = {key for key, parameter in held.items() if parameter.requires_grad}
        # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
        inside = len(self.record.passes) - 1 if self.activity.call else None
        taken = ledger.step(held.keys(), trained, zeros, inside)
        event = Step("step", place, self.shared(frozenset(grads)), optimizer=number, inner=self.activity.steps > 1)
        if self.activity.detailed:
            event.nan = {key for key, grad in grads.items() if has_nan(grad)}
            event.still = {key for key, grad in grads.items() if is_zero(grad)}
        event.taken = {passes: self.shared(frozenset(numbers)) for passes, numbers in taken.items()}
        for p in (self.record.passes[index] for passes in taken for index in passes - self.divided):
            if p.nodes & self.scaled and not (p.read or hasattr(optimizer, "grad_scale")):  # a fused step divides
                self.record.scaling[place] = False
        self.record.events.append(event)

    def copied(self) -> set[int]:
        """Return the accounts to whose parameters the script wrote what it computed from others."""
        pairs = [(account.number, account.parameter()) for account in self.record.accounts.values()]
        sources = {number: self.lineage.memory_of(p).sources for number, p in pairs if p is not None}
        return {number for number in sources if {*numbers_in(PARAMETER, sources[number])} - {number}}
