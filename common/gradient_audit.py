"""Where every gradient of a training step goes: used by an optimizer, wasted, or mixed with another network's."""

import gc
import inspect
import linecache
import os
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

CURES = {
    "mixed": "If this loss is for all of them, as an autoencoder's is, this is right. If not, name its leaves, "
    "`loss.backward(inputs=list(network.parameters()))`, or clear the gradients that are not for the next step.",
    "stale": "Call `optimizer.zero_grad()` between its step and the next `backward()`.",
    "unreached": "See whether `detach()` or `no_grad()` cuts them off, whether `zero_grad()` comes between "
    "`backward()` and `step()`, and whether the forward pass uses them at all.",
    "ownerless": "Give them to an optimizer, or freeze them with `requires_grad_(False)` if they must not change.",
    "wasted": "Name the leaves of this loss, `loss.backward(inputs=list(network.parameters()))`, or `detach()` the "
    "tensor at which its gradient must stop.",
}


class GradientFlowError(RuntimeError):
    """Raised by `GradientAudit.check`; the message lists the findings."""


@dataclass(frozen=True)
class Finding:
    """Something wasteful or wrong: its kind (`name`), the networks, what happens, the lines (`file:line`), the cure.

    `wasted`: gradients that no optimizer used. `mixed`: one backward pass gave gradients to networks of two optimizers.
    `stale`: an optimizer stepped on gradients older than its own last step. `unreached`: a parameter whose optimizer
    stepped and never found a gradient for it. `ownerless`: a parameter of a watched network that no optimizer holds.
    """

    name: str
    networks: tuple[str, ...]
    what: str
    lines: tuple[str, ...]
    cure: str

    @property
    def wrong(self) -> bool:
        """Whether the weights may differ from those intended; `wasted` only costs time and memory."""
        return self.name != "wasted"

    def __str__(self) -> str:
        """One line of Markdown."""
        at = f" [{', '.join(self.lines)}]" if self.lines else ""
        return f"**{self.name}**: {self.what}{at} {self.cure}"


@dataclass
class Pass:
    """A backward pass: the `file:line` and the code that called it, and a cell of the table for each network.

    A cell is "-" (no gradient), "used" (an optimizer stepped on it) or "wasted" (cleared, or left over without a
    step). If only some of the network's parameters were used, the cell says "used" and a finding counts the others.
    """

    where: str
    code: str
    raised: bool = False
    cells: dict[str, str] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set, repr=False)  # parameters, by id
    taken: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set), repr=False)  # by which optimizer


@dataclass
class _Account:
    """The backward passes that one parameter's `.grad` is the sum of.

    The gradient is held by a weak reference, so the audit needs no memory for it.
    """

    parameter: Tensor
    passes: set[int] = field(default_factory=set)
    grad: weakref.ref | None = None
    version: int = 0
    zero: bool = False
    asked: bool = False  # its optimizer stepped while it required a gradient
    fed: bool = False  # and found one at least once

    def add(self, number: int) -> None:
        """Record that pass `number` has added to the gradient."""
        grad = self.parameter.grad
        if grad is None:  # a hook of the user's has used and cleared it already
            self.passes.clear()
            return
        self.passes.add(number)
        self.grad, self.version, self.zero = weakref.ref(grad), grad._version, _is_zero(grad)

    def look(self, *, stepping: bool = False) -> None:
        """Forget the passes if the gradient has been cleared since the last look.

        A gradient that has become all zeros was cleared. One that was all zeros before and has been written to since
        was cleared if a backward pass comes next, and clipped or unscaled if a step comes next.
        """
        if self.passes:
            grad = self.parameter.grad
            gone = grad is None or self.grad() is not grad
            if gone or (_is_zero(grad) and (not self.zero or (grad._version != self.version and not stepping))):
                self.passes.clear()


@dataclass
class _Steps:
    """The steps of one optimizer: their lines, the number of passes before the last step, and what was stale."""

    optimizer: Optimizer
    lines: dict[str, None] = field(default_factory=dict)
    passes_before: int = 0
    stale: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))  # (pass, step): parameters


class GradientAudit:
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # a row for each backward pass, a column for each network
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `passes` are the backward passes in order and `findings` what is
    wasteful or wrong. `str(audit)` is a Markdown table of both, in which equal passes share a row and are counted.
    Raises TypeError if a network is not an `nn.Module`.

    It does not see: a backward pass by a function `backward` that was imported by name before the audit began; the
    origin of a gradient assigned to `.grad`; a step of anything but a `torch.optim.Optimizer`; and gradients that reach
    no `.grad`. A compiled network computes such: those of all its parameters, also of the ones that
    `backward(inputs=...)` leaves out.
    """

    # Each parameter has an account of the backward passes that its `.grad` is the sum of. `torch.autograd.backward`,
    # which `Tensor.backward` calls, is wrapped. Hooks on the parameters record which of them a pass reached, and step
    # hooks on the optimizers record which gradients were used. A gradient can be cleared in too many ways to watch
    # each of them, so `.grad` is inspected before every pass and step. It was cleared if it is None, is another
    # tensor, or has become all zeros; it was not if it was scaled, clipped or averaged in place.

    def __init__(self, /, **networks: nn.Module):
        """Take the networks, by the names that the table shows."""
        for name, network in networks.items():
            if not isinstance(network, nn.Module):
                raise TypeError(f"{name} is a {type(network).__name__}, not an nn.Module")
        self.networks = networks
        self.passes: list[Pass] = []
        self.findings: list[Finding] = []
        self._accounts: dict[int, _Account] = {}
        self._steps: dict[int, _Steps] = {}
        self._inside = False

    def __enter__(self) -> "GradientAudit":
        """Begin a new account."""
        self.passes, self.findings = [], []
        self._backward = torch.autograd.backward
        # A compiled function may call both; `disable` keeps them out of its graph.
        torch.autograd.backward = torch.compiler.disable(self._watched_backward)
        self._hook = register_optimizer_step_pre_hook(torch.compiler.disable(self._before_step))
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the hooks, then find what is wasteful or wrong."""
        torch.autograd.backward = self._backward
        self._hook.remove()
        self.findings = sorted(self._judge(), key=lambda finding: not finding.wrong)
        self._accounts, self._steps = {}, {}

    @property
    def optimizers(self) -> list[Optimizer]:
        """While the audit runs: the optimizers that stepped, and all others that hold a watched parameter."""
        self._watch()
        found = {id(steps.optimizer): steps.optimizer for steps in self._steps.values()}
        for thing in gc.get_objects():
            if issubclass(type(thing), Optimizer) and any(id(p) in self._accounts for p in _held(thing)):
                found.setdefault(id(thing), thing)
        return list(found.values())

    def check(self, *, waste: bool = False) -> None:
        """Raise GradientFlowError if a finding is wrong; with `waste`, also if one is only wasteful."""
        errors = [finding for finding in self.findings if waste or finding.wrong]
        if errors:
            raise GradientFlowError("\n".join(map(str, errors)))

    def __str__(self) -> str:
        """Table and findings, as Markdown that reads well in a terminal, too."""
        rows: Counter[tuple[str, ...]] = Counter()
        for p in self.passes:
            label = f"`{p.where} {p.code}`" + (" raised" if p.raised else "")
            rows[(label.replace("|", "\\|"), *(p.cells.get(name, "") for name in self.networks))] += 1
        lines = [["backward pass", "times", *self.networks]]
        lines += [[label, f"{times}x", *cells] for (label, *cells), times in rows.items()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        passes = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
        return "\n".join([*passes, "", *(f"- {finding}" for finding in self.findings)]).rstrip()

    def _watch(self) -> None:
        """Open an account for each parameter that has none: networks may get parameters during the audit."""
        for network in self.networks.values():
            for parameter in network.parameters():
                if not is_lazy(parameter):
                    self._accounts.setdefault(id(parameter), _Account(parameter))

    def _watched_backward(self, *args, **kwargs):
        if self._inside:  # a pass inside a pass, as in a reentrant checkpoint, is part of the outer one
            return self._backward(*args, **kwargs)
        self._watch()
        for account in self._accounts.values():
            account.look()
        current, number = Pass(*_caller()), len(self.passes)
        self.passes.append(current)

        # Hooks for this pass alone: a parameter that is frozen at the start of the audit could not have one.
        hooks = [
            account.parameter.register_post_accumulate_grad_hook(lambda p: current.reached.add(id(p)))
            for account in self._accounts.values()
            if account.parameter.requires_grad and account.parameter.is_leaf
        ]
        self._inside = True
        try:
            return self._backward(*args, **kwargs)
        except BaseException:
            current.raised = True
            raise
        finally:
            self._inside = False
            for hook in hooks:
                hook.remove()
            for key in current.reached:
                self._accounts[key].add(number)

    def _before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            self._take(optimizer)
            return None

        def watched_closure():  # the step uses the gradients that each call of the closure leaves
            loss = closure()
            self._take(optimizer)
            return loss

        if "closure" in kwargs:
            return args, {**kwargs, "closure": watched_closure}
        return (args[0], watched_closure, *args[2:]), kwargs

    def _take(self, optimizer: Optimizer) -> None:
        """Record that the optimizer uses the gradients of its parameters as they are now."""
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None and found_inf.item():
            return  # GradScaler calls the step of a fused optimizer, which skips it itself
        self._watch()
        where, _ = _caller()
        steps = self._steps.setdefault(id(optimizer), _Steps(optimizer))
        for parameter in _held(optimizer):
            account = self._accounts.get(id(parameter))
            if account is None:
                continue
            account.look(stepping=True)
            account.asked |= parameter.requires_grad
            if parameter.grad is None:
                continue
            # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
            sources = account.passes | ({len(self.passes) - 1} if self._inside else set())
            account.fed |= bool(sources) or not _is_zero(parameter.grad)
            for number in sources:
                self.passes[number].taken[id(optimizer)].add(id(parameter))
                if number < steps.passes_before:
                    steps.stale[self.passes[number].where, where].add(id(parameter))
        steps.passes_before = len(self.passes)
        steps.lines[where] = None

    def _judge(self) -> Iterator[Finding]:
        """Fill in the cells and yield the findings."""
        accounts, optimizers = self._accounts, self.optimizers
        for account in accounts.values():
            account.look()
        left_over = set().union(*(account.passes for account in accounts.values()))
        names = {
            network: {id(p): name for name, p in module.named_parameters() if id(p) in accounts}
            for network, module in self.networks.items()
        }
        mixed: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        wasted: dict[tuple[str, str], dict[int, set[int]]] = defaultdict(dict)
        for number, p in enumerate(self.passes):
            moved = {}
            for network, ids in names.items():
                reached = p.reached & ids.keys()
                if users := {optimizer for optimizer, taken in p.taken.items() if taken & reached}:
                    moved[network] = users
                if unused := reached.difference(*p.taken.values()):
                    wasted[network, p.where][number] = unused
                p.cells[network] = "used" if users else "wasted" if reached else "-"
            if len(_players(moved)) > 1:
                mixed[tuple(moved)][p.where] = None

        for networks, lines in mixed.items():
            what = f"one backward pass moved {' and '.join(networks)}, which have different optimizers."
            yield Finding("mixed", networks, what, tuple(lines), CURES["mixed"])
        for steps in self._steps.values():
            for lines, stale in steps.stale.items():
                networks = tuple(network for network, ids in names.items() if stale & ids.keys())
                what = f"an optimizer of {' and '.join(networks)} stepped on gradients older than its own last step."
                yield Finding("stale", networks, what, lines, CURES["stale"])
        for network, ids in names.items():
            if unreached := {key for key in ids if accounts[key].asked and not accounts[key].fed}:
                holders = [s for s in self._steps.values() if any(id(p) in unreached for p in _held(s.optimizer))]
                lines = tuple(dict.fromkeys(line for steps in holders for line in steps.lines))
                what = f"{_some(unreached, ids)} of {network} had no gradient whenever their optimizer stepped."
                yield Finding("unreached", (network,), what, lines, CURES["unreached"])
        frozen = {key for key, account in accounts.items() if not account.parameter.requires_grad}
        needless = frozen.difference(*(p.reached for p in self.passes))
        owned = {id(p) for optimizer in optimizers for p in _held(optimizer)}
        for network, ids in names.items():
            # Without any optimizer, no parameter is expected to have one.
            if (ownerless := ids.keys() - owned - needless) and optimizers:
                what = f"{_some(ownerless, ids)} of {network} are held by no optimizer."
                yield Finding("ownerless", (network,), what, (), CURES["ownerless"])
        for (network, line), unused in wasted.items():
            some = _some(set().union(*unused.values()), names[network])
            what = f"{some} of {network} got gradients that no optimizer used, {len(unused)}x."
            cure = CURES["wasted"]
            if not self._steps:
                cure = "No optimizer stepped during the audit: audit whole steps."
            elif left_over.issuperset(unused):
                cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
            yield Finding("wasted", (network,), what, (line,), cure)


def _caller() -> tuple[str, str]:
    """Return `file:line` and the code of the innermost frame outside PyTorch and the audit."""
    others = (f"{torch.__path__[0]}{os.sep}", _caller.__code__.co_filename)
    frame = inspect.currentframe()
    while frame.f_code.co_filename.startswith(others) and frame.f_back:
        frame = frame.f_back
    path, line = frame.f_code.co_filename, frame.f_lineno
    return f"{Path(path).name}:{line}", linecache.getline(path, line).strip()[:60]


def _held(optimizer: Optimizer) -> Iterator[Tensor]:
    return (parameter for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"])


def _is_zero(grad: Tensor) -> bool:
    return not grad.detach().any()


def _players(moved: dict[str, set[int]]) -> list[set[int]]:
    """Return the sets of optimizers that moved each network; sets with a common optimizer are united into one."""
    players: list[set[int]] = []
    for optimizers in moved.values():
        joined = [player for player in players if player & optimizers]
        players = [player for player in players if not player & optimizers] + [optimizers.union(*joined)]
    return players


def _some(keys, names: dict[int, str]) -> str:
    """Return how many of the parameters, and which: "2 of the 4 parameters (0.weight, 0.bias)"."""
    chosen = [name for key, name in names.items() if key in keys]
    shown = ", ".join(chosen[:3]) + (", ..." if len(chosen) > 3 else "")
    return f"{len(chosen)} of the {len(names)} parameters ({shown})"
