"""The parameters: a number for each, and its `.grad` as it was at the last look."""

import weakref
from collections.abc import Iterable, Set
from dataclasses import dataclass
from types import SimpleNamespace
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.trace import ParameterFound
from gradient_audit.watch.frames import current_place
from gradient_audit.watch.guard import CannotWatch, guarded, watch_calls
from gradient_audit.watch.session import Session
from gradient_audit.watch.tensors import nodes_of, parameters_of, tensors_in


@dataclass(eq=False)
class Account:
    """A watched parameter, and its gradient at the last look. It keeps no memory of theirs in use."""

    number: int
    parameter: weakref.ref
    grad: weakref.ref | None = None
    version: int = 0
    version_before: int = -1  # of the parameter, before the step that runs; -1: it had no gradient
    sum_before: float | None = None  # of its values, if that step may clear the gradient itself
    overwritten: bool = False  # the script has written all of the gradient since the last step on it
    hooked: bool = False
    reached: bool = False  # by a watched pass
    stepped: int = 0  # the sequence number of the next node when a step last raised its version


class Parameters:
    """Opens an account for each parameter that may get a gradient."""

    def __init__(self, session: Session):
        self.session, self.guard, self.activity = session, session.guard, session.activity
        self.accounts: dict[int, Account] = {}  # by the id of the parameter
        self.made = WeakIdKeyDictionary()  # modules, optimizers, parameters: the lines that made them
        self.pending = WeakIdKeyDictionary()  # modules that may have parameters without an account
        self.elsewhere = WeakIdKeyDictionary()  # leaves that passes of other threads come to

    @guarded
    def note_new(self, parameter: Tensor) -> None:
        self.made.setdefault(parameter, current_place())

    def start(self) -> None:
        """Let tensors be swapped, as `network.to()` may do: PyTorch refuses those with weak references to them."""
        without = SimpleNamespace(getweakrefs=lambda _: [])
        self.session.hooks.enter_context(mock.patch.object(torch.utils, "weakref", without))
        watch_calls(self.session.hooks, torch.utils, "swap_tensors", self.note_swap)

    @guarded
    def note_swap(self, *tensors: Tensor) -> None:
        """Watch parameters again: they are the same objects with other contents, which have no hook."""
        for account, parameter in self.accounts_of(tensors):
            parameter._post_accumulate_grad_hooks, account.hooked = None, False
            self.open(parameter)

    def expect(self, *modules: nn.Module) -> None:
        for module in modules:  # no dict: a user's own `==` may compare them
            self.pending[module] = None

    def open_all(self) -> None:
        """Open accounts for the new parameters of modules."""
        pending, self.pending = self.pending, WeakIdKeyDictionary()
        for module in list(pending):
            for parameter in nn.Module.parameters(module):
                if is_lazy(parameter) or not isinstance(parameter, nn.Parameter):  # functional_call puts others there
                    self.pending[module] = None
                else:
                    self.open(parameter)

    def open(self, parameter: Tensor) -> Account:
        """Return the account of a parameter, which is opened if there is none."""
        key, accounts = id(parameter), self.accounts
        if (account := accounts.get(key)) is None:
            reference = weakref.ref(parameter, lambda _: accounts.pop(key, None))
            account = accounts[key] = Account(self.session.number_of(parameter), reference)
            self.session.add(ParameterFound(account.number, self.made.get(parameter)))
        if not account.hooked and parameter.requires_grad and parameter.is_leaf:
            account.hooked = True
            self.session.hooks.callback(parameter.register_post_accumulate_grad_hook(self.note_gradient).remove)
        return account

    @guarded
    def note_gradient(self, parameter: Tensor) -> None:
        """Note that the pass that runs has come to a parameter."""
        given = parameter.grad is not None or len(parameter._post_accumulate_grad_hooks) > 1  # another has used it
        account = self.accounts.get(id(parameter))  # None of a copy that only a graph holds
        is_watched = account and self.activity.call and not self.activity.is_elsewhere()
        if given and parameter.requires_grad and is_watched:
            account.reached = True
            self.activity.call.reached.add(account.number)

    def note_elsewhere(self, losses: tuple) -> None:
        """Note what a pass of another thread comes to: a `.grad` that is read while that thread clears it may crash."""
        nodes = nodes_of(loss.grad_fn for loss in tensors_in(losses)) if self.activity.is_elsewhere() else ()
        for node in (node for node in nodes if hasattr(node, "variable")):
            self.elsewhere[node.variable] = None

    @guarded
    def refuse_elsewhere(self, optimizer: Optimizer) -> None:
        """Raise CannotWatch if an optimizer that steps in another thread holds what watched passes have reached."""
        accounts = [self.accounts.get(id(parameter)) for parameter in parameters_of(optimizer)]
        if any(account and account.reached for account in accounts):
            where = current_place().where
            raise CannotWatch(f"{where} steps in another thread than the passes run in, and it watches one thread")

    def refuse_older(self, losses: tuple) -> None:
        """Raise TypeError if a pass is to go through networks that are older than the audit, and that nobody named."""
        leaves = [getattr(node, "variable", None) for node in nodes_of(loss.grad_fn for loss in tensors_in(losses))]
        for leaf in (leaf for leaf in leaves if type(leaf) is nn.Parameter):
            if leaf not in self.made and id(leaf) not in self.accounts:
                raise TypeError("this network is older than the audit; name it: `GradientAudit(network=network)`")

    def keys_of(self, numbers: Set[int]) -> set[int]:
        return {key for key, account in self.accounts.items() if account.number in numbers}

    def accounts_of(self, parameters: Iterable[Tensor]) -> list[tuple[Account, Tensor]]:
        """Return the watched ones among tensors, with their accounts."""
        self.open_all()
        return [(self.accounts[id(p)], p) for p in parameters if id(p) in self.accounts]

    def numbers_of(self, parameters: Iterable[Tensor]) -> frozenset[int]:
        """Return the numbers of the watched ones among tensors."""
        return frozenset(account.number for account, _ in self.accounts_of(parameters))

    def living(self) -> list[tuple[Account, Tensor]]:
        """Return the accounts whose parameters exist, without those that another thread alone trains."""
        pairs = [(account, account.parameter()) for account in [*self.accounts.values()]]
        pairs = [(account, parameter) for account, parameter in pairs if parameter is not None]
        return [(a, p) for a, p in pairs if a.reached or p not in self.elsewhere] if self.elsewhere else pairs
