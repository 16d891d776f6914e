"""The optimizers: found when they are made, when they step, or among all objects."""

import gc
import weakref

from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.places import Place
from gradient_audit.trace import OptimizerMade
from gradient_audit.watch.frames import construction_place
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.parameters import Parameters
from gradient_audit.watch.session import Session
from gradient_audit.watch.tensors import parameters_of


class Optimizers:
    """Numbers the optimizers of a script."""

    def __init__(self, session: Session, parameters: Parameters):
        self.session, self.guard, self.parameters = session, session.guard, parameters
        self.known = WeakIdKeyDictionary()  # all that were seen
        self.active: dict[int, Optimizer] = {}  # that stepped or hold a watched parameter: the newest of each number
        self.constructed: dict[tuple[Place, frozenset[int]], int] = {}  # by line and parameters: the number
        self.lost_state: set[int] = set()  # numbers of those that were made anew
        self.leaves: list[weakref.ref] = []  # that passes came to: no watched parameters, and no start of a sum

    def search(self) -> None:
        """Find the optimizers that exist, also those that were copied or unpickled."""
        for thing in gc.get_objects():
            if issubclass(type(thing), Optimizer):
                self.number_of(thing)

    @guarded
    def find(self) -> list[Optimizer]:
        """Return the optimizers that stepped or hold a watched parameter; wrappers, whose `step` has no hooks, not."""
        self.parameters.open_all()
        concerned = {*self.parameters.accounts, *(id(leaf()) for leaf in self.leaves)}
        for thing in list(self.known):
            if getattr(type(thing).step, "hooked", False) and any(id(p) in concerned for p in parameters_of(thing)):
                self.active.setdefault(self.number_of(thing), thing)
        return list(self.active.values())

    def number_of(self, optimizer: Optimizer) -> int:
        """Return the number of an optimizer; a new one, if it has none."""
        self.known[optimizer] = None
        return self.session.number_of(optimizer)

    def number_of_step(self, optimizer: Optimizer) -> int:
        """Return the number of an optimizer that steps; a new one, if a later one of its line exists beside it."""
        number = self.number_of(optimizer)
        if self.active.get(number, optimizer) is not optimizer:
            del self.session.numbers[optimizer]
            number = self.number_of(optimizer)
        self.active[number] = optimizer
        return number

    @guarded
    def note_construction(self, optimizer: Optimizer, *_: object, **__: object) -> None:
        """Give an optimizer the number of an earlier one that was made at the same line for the same parameters."""
        self.parameters.made[optimizer] = place = construction_place(optimizer)
        numbers = self.parameters.numbers_of(parameters_of(optimizer))
        if numbers and (number := self.constructed.get((place, numbers))):
            if number in self.active and any(self.active[number].state.values()):
                self.lost_state.add(number)
            self.session.numbers[optimizer] = number
            self.active[number] = optimizer
        number = self.constructed[place, numbers] = self.number_of(optimizer)
        if numbers:
            self.session.add(OptimizerMade(place, number, numbers))


def is_of_torch(optimizer: Optimizer) -> bool:
    """Whether an optimizer is PyTorch's: one of the script's own may write to what it holds, without a gradient."""
    return type(optimizer).__module__.startswith("torch.optim.")
