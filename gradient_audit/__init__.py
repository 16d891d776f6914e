"""Where every gradient of a training step goes, and what is wrong on its way.

One file that needs PyTorch alone. `GradientAudit` is a context manager: it changes no number and leaves nothing behind.
"""

import gc
import io
import linecache
import os
import re
import sys
import sysconfig
import tokenize
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice, zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.nn.modules import module as registration
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

SEVERITIES = {
    "mixed": "error",
    "stale": "error",
    "twice": "error",
    "idle": "error",
    "dead": "error",
    "overwritten": "error",
    "unreached": "error",
    "ownerless": "error",
    "meant?": "question",
    "unused": "question",
    "unfrozen": "waste",
    "wasted": "waste",
}
"""Each kind of finding; `Finding` explains them. The order is that of the report."""

CURES = {
    "mixed": "Name the leaves of the loss, `loss.backward(inputs=list(network.parameters()))`, or clear the gradients "
    "that are not for the step.",
    "stale": "Call `optimizer.zero_grad()` between its step and the next `backward()`.",
    "twice": "Call `zero_grad()` between the two steps, or let one optimizer alone hold these parameters.",
    "held": "Give each parameter to the optimizer once: `list(dict.fromkeys(parameters))`.",
    "idle": "Call its `step()`, or give its parameters to an optimizer that steps.",
    "dead": "See whether `detach()`, `no_grad()`, `.item()`, or a penalty without `create_graph=True` cuts it off, and "
    "whether the network that it should move is frozen or missing from `inputs=`.",
    "unreached": "See whether `detach()` or `no_grad()` cuts them off, whether `zero_grad()` comes between "
    "`backward()` and `step()`, and whether the forward pass uses them at all.",
    "ownerless": "Give them to an optimizer, or freeze them with `requires_grad_(False)` if they must not change.",
    "meant?": "If this loss is for all of them, as an autoencoder's is, this is right. If not, name its leaves, "
    "`loss.backward(inputs=list(network.parameters()))`.",
    "unused": "Delete it if it is not needed; compute samples under `torch.no_grad()`; or add the missing "
    "`backward()`.",
    "unfrozen": "Freeze it, `network.requires_grad_(False)`, if it only judges, as a loss network does; give it to an "
    "optimizer if it is to learn.",
    "wasted": "Name the leaves of this loss, `loss.backward(inputs=list(network.parameters()))`, or `detach()` the "
    "tensor at which its gradient must stop.",
}
LEGEND = {
    "used": "an optimizer stepped on the gradient",
    "wasted": "the gradient was cleared, or left over without a step",
    "read": "autograd.grad() went through the network; nothing is added to .grad",
    "-": "no gradient",
}
DETAILED = 12  # backward passes with forward passes, terms and lines of operations: two rounds of WGAN's five and one
IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one
SUMS = ("AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0")
SUM_OPERATIONS = (torch.ops.aten.add, torch.ops.aten.add_, torch.ops.aten.sub, torch.ops.aten.sub_)
SCALES = ("MulBackward0", "DivBackward0", "NegBackward0", "SumBackward0", "MeanBackward0", "RsubBackward1")
SCALES += ("ViewBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0", "CloneBackward0")
IN_PLACE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)


class GradientFlowError(RuntimeError):
    """Raised by `GradientAudit.check`; the message lists the findings."""


class Place(NamedTuple):
    """A line of the user's code, or, with `columns`, an expression on it.

    `via` is the library's line that was called from there, or "". `columns` are the last line, and the columns in
    bytes at which the expression begins and ends.
    """

    file: str
    number: int
    function: str
    via: str = ""
    columns: tuple[int, int, int] | None = None

    @property
    def where(self) -> str:
        """The line as `file.py:12`."""
        return f"{Path(self.file).name}:{self.number}"

    @property
    def code(self) -> str:
        """The source of it, without its comment, 60 characters at most."""
        return _code(self.file, self.number, self.columns)[:60]

    def data(self) -> dict[str, object]:
        """Return it as what `json.dump` takes."""
        return {"file": self.file, "line": self.number, "function": self.function, "code": self.code, "via": self.via}

    def __str__(self) -> str:
        """Show the library's line, too, where the code does not tell what was called."""
        via = f" via {self.via}" if self.via and not re.search(r"backward|step|grad", self.code) else ""
        return f"`{self.where} {self.code}`{via}"


@dataclass(frozen=True)
class Finding:
    """Something wrong, doubtful or wasteful: its kind, the networks, what happens, the places, the cure.

    Errors: the weights are, or soon will be, others than those meant.
    `mixed`: an optimizer stepped on the sum of several passes, one of which also moved another player (the networks
    under other optimizers). `stale`: an optimizer stepped again on gradients that it had stepped on. `twice`: two
    optimizers stepped on one gradient, or one that holds a parameter twice. `idle`: an optimizer never stepped though
    its parameters got gradients and others stepped. `dead`: a term of a loss reaches no parameter that its pass moved.
    `overwritten`: a backward pass needed a tensor that had been changed since its forward pass. `unreached`: a
    parameter whose optimizer stepped and never found a gradient for it. `ownerless`: a parameter that no optimizer
    holds.
    Questions: `meant?`: one pass moved networks of two players. `unused`: a graph was built and no backward pass came.
    Waste: `wasted`: gradients that no optimizer used. `unfrozen`: the same of a whole network without an optimizer.
    """

    kind: str
    networks: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    cure: str
    facts: tuple[tuple[str, str], ...] = ()  # of `overwritten`: what is wanted, who wrote it, and so on
    silent: bool = False  # of `overwritten`: PyTorch alone gives no error

    @property
    def severity(self) -> str:
        """One of "error", "question" and "waste"."""
        return SEVERITIES[self.kind]

    @property
    def lines(self) -> tuple[str, ...]:
        """The places as `file.py:12`; the first is the one to look at."""
        return tuple(dict.fromkeys(place.where for place in self.places))

    @property
    def line(self) -> str:
        """The first of `lines`, or ""."""
        return next(iter(self.lines), "")

    def __str__(self) -> str:
        """One line of Markdown."""
        at = f" [{', '.join(self.lines)}]" if self.lines else ""
        return f"**{self.kind}** ({self.severity}): {self.text}{at} {self.cure}"


@dataclass
class Term:
    """A term of the loss of a pass: where it was computed, if that was seen, and the networks that it reaches."""

    place: Place | None
    name: str
    reached: set[int] = field(default_factory=set, repr=False)
    value: float | None = None  # of a constant
    sources: int = field(default=0, repr=False)  # of a constant: the parameters that it was computed from, as bits
    whole: bool = True  # whether the graph shows all that it reaches
    cells: dict[str, str] = field(default_factory=dict)
    dead: bool = False


@dataclass
class Event:
    """Something that happened: "forward", "backward", "grad" (autograd.grad), "step" or "zero_grad".

    `cells` has a word for each network. Of a backward pass: "-" (no gradient), "used" (an optimizer stepped on it) or
    "wasted" (cleared, or left over without a step); if only some of the network's parameters were used, "used", and a
    finding counts the others. Of autograd.grad: "read" or "-". Of the others: "here" or "-".
    """

    kind: str
    place: Place
    raised: bool = False
    create_graph: bool = False
    cells: dict[str, str] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    reached: set[int] = field(default_factory=set, repr=False)  # parameters, by their account's number
    taken: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set), repr=False)  # by which optimizer
    module: weakref.ref | None = field(default=None, repr=False)  # of a forward pass
    graph: list[weakref.ref] = field(default_factory=list, repr=False)  # each dies with a node of the graph it built
    detailed: bool = False  # whether its loss was split into terms
    start: int = 0  # of a forward pass: the number of events before it
    whole: bool = False  # whether the module is a network, not a part; of a pass: whether its graph shows all leaves
    loose: list[weakref.ref] = field(default_factory=list, repr=False)  # the leaves that are in no network
    gone: bool = False  # whether that graph no longer exists
    needed: bool = False  # whether a backward pass came through that graph

    @property
    def where(self) -> str:
        """The line as `file.py:12`."""
        return self.place.where

    @property
    def code(self) -> str:
        """The source of the line."""
        return self.place.code


@dataclass
class _Account:
    """The backward passes that one parameter's `.grad` is the sum of.

    Parameter and gradient are held by weak references, so the audit keeps no memory in use.
    """

    number: int
    parameter: weakref.ref
    passes: set[int] = field(default_factory=set)
    grad: weakref.ref | None = None
    version: int = 0
    zero: bool = False
    asked: bool = False  # its optimizer stepped while it required a gradient
    fed: bool = False  # and found one at least once
    takers: dict[int, tuple[int, Place]] = field(default_factory=dict)  # of a pass in `passes`: who stepped on it first
    before: int = 0  # its version before the step that is running
    steps: deque = field(default_factory=lambda: deque(maxlen=8))  # (version after the step, place of the step)
    hook: object = None


@dataclass
class _Steps:
    """The steps of one optimizer; None stands for steps by hand, `p.data.add_(p.grad, alpha=-lr)`."""

    optimizer: Optimizer | None
    places: Counter = field(default_factory=Counter)
    passes_before: int = 0  # the number of passes before the last step
    stale: dict[tuple[int, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # (pass, step): accounts
    sums: dict[frozenset, tuple[set[int], Place]] = field(default_factory=dict)  # passes: (accounts, step)
    twice: dict[tuple[Place, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # (here, first)
    held: tuple[Place, set[int]] | None = None  # parameters that it holds twice


@dataclass
class _Write:
    """An in-place operation: the storage, the version before, what did it and where."""

    storage: int
    version: int
    name: str
    place: Place


@dataclass
class _Overwritten:
    """What is known of an error "modified by an inplace operation"."""

    event: Event
    storages: dict[int, str] = field(default_factory=dict)  # of the tensors that fit, each with a description
    accounts: set[int] = field(default_factory=set)  # of the parameters among them
    readers: list[Place] = field(default_factory=list)
    writers: list[Place] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)  # in place; none if optimizers alone have written
    behind: set[int] = field(default_factory=set)  # the parameters to which the gradient goes through these tensors
    ahead: set[int] = field(default_factory=set)  # all that the pass reaches
    hidden: bool = False  # whether PyTorch alone gives no error


class _Operations(TorchDispatchMode):
    """Tell the audit of every operation of the forward passes."""

    def __init__(self, audit: "GradientAudit"):
        super().__init__()
        self.audit = audit

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Keep torch.compile from refusing to compile under this mode."""
        return True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.audit._operation(function, args, result)
        return result


class GradientAudit:
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # the answer, a row for each backward pass, the findings
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `events` are what happened in order, `passes` the backward passes
    among them, and `findings` what is wrong, doubtful or wasteful. `str(audit)` is Markdown; equal passes share a row
    and are counted. `data()` is all of it as plain lists and dictionaries. Raises TypeError if a network is not an
    `nn.Module`.

    The first 12 backward passes are watched in detail, which takes time: forward passes, the terms of each loss, the
    lines of in-place operations. If a network is compiled, these details are left out.

    A fused optimizer, or one that writes through `.data`, does not raise the versions of the weights that it changes,
    so PyTorch does not notice when a backward pass needs them as they were. The audit raises them; where that makes
    `backward()` raise, the gradient would have been wrong.

    It does not see: a backward pass by a function `backward` that was imported by name before the audit began; the
    origin of a gradient assigned to `.grad`; and gradients that reach no `.grad`. A compiled network computes such:
    those of all its parameters, also of the ones that `backward(inputs=...)` leaves out.
    """

    # Each parameter has an account of the backward passes that its `.grad` is the sum of. `torch.autograd.backward`,
    # which `Tensor.backward` calls, is wrapped. Hooks on the parameters record which of them a pass reached, and step
    # hooks on the optimizers record which gradients were used. A gradient can be cleared in too many ways to watch
    # each of them, so `.grad` is inspected before every pass and step. It was cleared if it is None, is another
    # tensor, or has become all zeros; it was not if it was scaled, clipped or averaged in place.

    def __init__(self, /, **networks: nn.Module):
        """Take the networks, by the names that the table shows."""
        for name, network in networks.items():
            if not issubclass(type(network), nn.Module):
                raise TypeError(f"{name} is a {type(network).__name__}, not an nn.Module")
        self.networks = networks
        self._begin()

    def _begin(self) -> None:
        self.events: list[Event] = []
        self.passes: list[Event] = []
        self.findings: list[Finding] = []
        self.optimizers_seen: list[dict] = []
        self._kept: list[Optimizer] = []  # found before; the script may drop them at its end
        self._accounts: dict[int, _Account] = {}  # by the id of the parameter
        self._steps: dict[int, _Steps] = {}
        self._numbers = count()
        self._reached: set[int] = set()  # by the pass that runs
        self._inside = self._stepping = self._depth = 0
        self._new = True  # whether there may be parameters without an account
        self._scales = self._hides = False  # the script writes to gradients in place; and behind their versions
        self._raised: set[int] = set()  # accounts whose version the audit has raised in place of an optimizer
        self._details = False
        self._lines: dict[int, tuple[CodeType, int, int]] = {}  # of a node of the graph, by its sequence number
        self._descent: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of a storage: `_sources`
        self._numbers_from = 0  # `_sources` of what item() has read since the last pass
        self._constants: dict[int, tuple] = {}  # likewise, the summands that need no gradient
        self._writes: deque[_Write] = deque(maxlen=4096)
        self._overwritten: list[_Overwritten] = []
        self._by_hand: list[tuple[int, frozenset, Place]] = []  # parameter, passes, where it was written to
        self._active = self._resume = False
        self._mode: _Operations | None = None
        self._starts: list[int] = []  # of the forward passes that run: the number of events before

    def __enter__(self) -> "GradientAudit":
        """Begin a new account."""
        self._begin()
        self._active = True
        self._originals = torch.autograd.backward, torch.autograd.grad, torch.compile
        # A compiled function may call these; `disable` keeps them out of its graph.
        torch.autograd.backward = torch.compiler.disable(self._watched_backward)
        torch.autograd.grad = torch.compiler.disable(self._watched_grad)
        torch.compile = self._watched_compile
        self._hooks = [
            register_optimizer_step_pre_hook(torch.compiler.disable(self._before_step)),
            register_optimizer_step_post_hook(torch.compiler.disable(self._after_step)),
            registration.register_module_parameter_registration_hook(self._changed),
            registration.register_module_module_registration_hook(self._changed),
        ]
        if not any(hasattr(m, "_orig_mod") or m._compiled_call_impl for n in self._modules() for m in n.modules()):
            self._detail(True)
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the hooks, then find what is wrong, doubtful or wasteful."""
        self._active = False
        self._detail(False)
        for event in self.events:
            event.gone = bool(event.graph) and not any(node() for node in event.graph)
        torch.autograd.backward, torch.autograd.grad, torch.compile = self._originals
        for hook in [*self._hooks, *(account.hook for account in self._accounts.values() if account.hook)]:
            hook.remove()
        optimizers = self.optimizers
        self.findings = sorted(self._judge(optimizers), key=lambda finding: [*SEVERITIES].index(finding.kind))
        self.optimizers_seen = [self._described(optimizer) for optimizer in optimizers]
        self._accounts, self._steps, self._overwritten = {}, {}, []
        self._lines, self._constants, self._writes, self._kept = {}, {}, deque(), []
        self._descent.clear()

    @property
    def optimizers(self) -> list[Optimizer]:
        """While the audit runs: the optimizers that stepped, and all others that hold a watched parameter.

        Wrappers of other optimizers, whose `step` PyTorch does not hook, are left out.
        """
        self._watch()
        known = [*self._kept, *(steps.optimizer for steps in self._steps.values() if steps.optimizer)]
        found = {id(optimizer): optimizer for optimizer in known}
        kinds = {kind for kind in _subclasses(Optimizer) if getattr(getattr(kind, "step", None), "hooked", False)}
        concerned = {
            *self._accounts,
            *(id(leaf) for p in self.passes for ref in p.loose if (leaf := ref()) is not None),
        }
        for thing in [thing for thing in gc.get_objects() if type(thing) in kinds]:
            if any(id(p) in concerned for p in parameters_of(thing)):
                found.setdefault(id(thing), thing)
        return list(found.values())

    @property
    def severity(self) -> str:
        """The worst of the findings: "error", "question", "waste", or "" if there is none."""
        return self.findings[0].severity if self.findings else ""

    def check(self, *, questions: bool = False, waste: bool = False) -> None:
        """Raise GradientFlowError for an error; with `questions` or `waste`, also for a question or for waste."""
        wanted = {"error", *["question"] * questions, *["waste"] * waste}
        if found := [finding for finding in self.findings if finding.severity in wanted]:
            raise GradientFlowError("\n".join(map(str, found)))

    def has_stepped(self, optimizer: Optimizer) -> bool:
        """Return whether `optimizer` has stepped under this audit."""
        return id(optimizer) in self._steps

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two, with the finding to look at first."""
        if not self.passes:
            return "No backward pass ran."
        if not self.findings:
            return "Nothing wrong, nothing wasted."
        counts = Counter(finding.severity for finding in self.findings)
        told = [f"{n} {kind}{'s' * (n > 1 and kind != 'waste')}" for kind, n in counts.items()]
        opening = f"{'Wrong' if counts['error'] else 'Nothing wrong'}. {', '.join(told)}:"
        first = self.findings[0]
        if first.facts:
            width = max(len(label) for label, _ in first.facts)
            facts = "".join(f"\n- {label:<{width}}  {told}" for label, told in first.facts)
            return f"{opening} a backward pass needs a tensor as it was before it was changed in place.\n{facts}"
        at = f" ({first.line})" if first.line and first.line not in first.text else ""
        return f"{opening} {first.text.rstrip('.')}{at}. Cure: {first.cure}"

    def data(self) -> dict:
        """Return all of it as what `json.dump` takes.

        Keys: `torch`, the version; `severity` and `verdict`; `networks` and `optimizers`; `events` in order and
        `findings`, with places of file, line, function, code and the library's line. A cell is told by `Event`.
        """
        return {
            "torch": torch.__version__,
            "severity": self.severity,
            "verdict": self.verdict,
            "networks": [
                {
                    "name": name,
                    "class": type(n).__name__,
                    "parameters": sum(p.numel() for p in n.parameters() if not is_lazy(p)),
                }
                for name, n in self.networks.items()
            ],
            "optimizers": self.optimizers_seen,
            "events": [
                {
                    "kind": event.kind,
                    "place": event.place.data(),
                    "cells": event.cells,
                    "raised": event.raised,
                    "create_graph": event.create_graph,
                    "terms": [
                        {"name": t.name, "place": t.place and t.place.data(), "cells": t.cells, "dead": t.dead}
                        for t in event.terms
                    ],
                }
                for event in self.events
            ],
            "findings": [
                {
                    "kind": finding.kind,
                    "severity": finding.severity,
                    "networks": list(finding.networks),
                    "text": finding.text,
                    "cure": finding.cure,
                    "facts": dict(finding.facts),
                    "places": [place.data() for place in finding.places],
                }
                for finding in self.findings
            ],
        }

    def _described(self, optimizer: Optimizer) -> dict:
        steps = self._steps.get(id(optimizer))
        numbers = {self._accounts[id(p)].number for p in parameters_of(optimizer) if id(p) in self._accounts}
        return {
            "class": type(optimizer).__name__,
            "networks": list(self._networks_of(numbers)),
            "steps": sum(steps.places.values()) if steps else 0,
            "places": [place.data() for place in steps.places] if steps else [],
            "fused": any(group.get("fused") for group in optimizer.param_groups),
        }

    def __str__(self) -> str:
        """Return the answer, the table and the findings, as Markdown that reads well in a terminal, too."""
        return "\n\n".join(part for part in (self.verdict, self.table, self.listing) if part)

    @property
    def listing(self) -> str:
        """The findings, a line each."""
        return "\n".join(f"- {finding}" for finding in self.findings)

    @property
    def table(self) -> str:
        """A row for every backward pass and for each of its terms, and what the cells mean; "" without any pass."""
        rows: Counter[tuple] = Counter()
        for event in self.events:
            if event.kind == "backward" or (event.kind == "grad" and "read" in event.cells.values()):
                note = " raised" * event.raised + " (create_graph)" * event.create_graph
                lines = [(f"{event.place}{note}", *event.cells.values())]
                # Terms that all do what the pass does tell nothing.
                terms = event.terms if any(t.dead or t.cells != event.cells for t in event.terms) else []
                for term in terms:
                    label = f"  + {term.place or term.name}" + " (dead)" * term.dead
                    lines.append((label, *term.cells.values()))
                rows[tuple(lines)] += 1
        if not rows:
            return ""
        table = [("backward pass", "times", *self.networks)]
        for lines, times in rows.items():
            for index, (label, *cells) in enumerate(lines):
                table.append((label.replace("|", "\\|"), f"{times}x" if index == 0 else "", *cells))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        table.insert(1, tuple("-" * width for width in widths))
        shown = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in table]
        words = {cell for event in self.events if event.kind in ("backward", "grad") for cell in event.cells.values()}
        legend = "; ".join(f"{word}: {meaning}" for word, meaning in LEGEND.items() if word in words)
        return "\n".join([*shown, *["", f"{legend}."] * bool(legend)])

    # What happens, while it happens.

    def _modules(self) -> Iterable[nn.Module]:
        return self.networks.values()

    def _changed(self, *_: object) -> None:
        self._new = True

    def _watch(self) -> None:
        """Open an account for each parameter that has none: networks may get parameters during the audit."""
        if not self._new:
            return
        self._new = False
        for network in list(self._modules()):
            for parameter in network.parameters():
                if is_lazy(parameter):
                    self._new = True
                else:
                    self._account(parameter)

    def _account(self, parameter: Tensor) -> _Account:
        key = id(parameter)
        account = self._accounts.get(key)
        if account is None:
            gone = weakref.ref(parameter, lambda _, accounts=self._accounts: accounts.pop(key, None))
            account = self._accounts[key] = _Account(next(self._numbers), gone)
        if account.hook is None and parameter.requires_grad and parameter.is_leaf:
            account.hook = parameter.register_post_accumulate_grad_hook(
                lambda p, number=account.number: self._reached.add(number) if p.requires_grad else None
            )
        return account

    def _hook_unfrozen(self) -> None:
        """Add the hooks of parameters that were frozen when their account was opened: only others can have one."""
        for account in self._accounts.values():
            if account.hook is None and (parameter := account.parameter()) is not None:
                self._account(parameter)

    def _look(self, account: _Account, parameter: Tensor, *, stepping: bool = False) -> None:
        """Forget the passes if the gradient has been cleared since the last look.

        A gradient that has become all zeros was cleared. One that was all zeros before and has been written to since
        was cleared if a backward pass comes next, and clipped or unscaled if a step comes next.
        """
        grad = parameter.grad
        if grad is None or account.grad() is not grad:
            cleared = True
        elif grad._version != account.version:
            self._scales = True
            cleared = (not account.zero or not stepping) and _is_zero(grad)
        else:
            cleared = self._looks_closely and not account.zero and _is_zero(grad)
            self._hides |= cleared
        if cleared:
            account.passes.clear()
            account.takers.clear()

    @property
    def _looks_closely(self) -> bool:
        """Whether the values of gradients are read: at first, and in scripts that write to them."""
        return self._hides or len(self.passes) <= DETAILED

    def _add(self, account: _Account, number: int) -> None:
        """Record that pass `number` has added to the gradient."""
        parameter = account.parameter()
        grad = None if parameter is None else parameter.grad
        if grad is None:  # a hook of the user's has used and cleared it already
            account.passes.clear()
            account.takers.clear()
            return
        account.passes.add(number)
        account.grad, account.version = weakref.ref(grad), grad._version
        account.zero = (self._looks_closely or self._scales) and _is_zero(grad)

    def _watched_backward(self, *args, **kwargs):
        original = self._originals[0]
        # A pass inside a pass, as in a reentrant checkpoint, is part of the outer one.
        if self._inside or not self._active:
            return original(*args, **kwargs)
        paused = self._pause()  # looking at gradients is no operation of the script
        self._watch()
        self._hook_unfrozen()
        for account in list(self._accounts.values()):
            if account.passes and (parameter := account.parameter()) is not None:
                self._look(account, parameter)
        self._stepping = 0
        event = Event("backward", _here())
        number = len(self.passes)
        roots = _roots(args, kwargs)
        if self._details:
            event.terms, event.detailed = self._terms(roots), True
            event.loose, event.whole = self._loose(args, kwargs)
            self._numbers_from = 0
        self.events.append(event)
        self.passes.append(event)
        self._reached = event.reached
        try:
            return self._run(event, roots, original, args, kwargs)
        finally:
            self._reached = set()
            by_number = {account.number: account for account in self._accounts.values()}
            for key in event.reached & by_number.keys():
                self._add(by_number[key], number)
            if paused:
                self._mode.__enter__()
            if len(self.passes) == DETAILED:
                self._detail(False)

    def _watched_grad(self, outputs, inputs, *args, **kwargs):
        original = self._originals[1]
        outputs, inputs = (tuple(x) if isinstance(x, Iterator) else x for x in (outputs, inputs))  # read once
        tensors, ends = list(_tensors(outputs)), list(_tensors(inputs))
        # Other kinds of tensors are those of a compiler that derives the graph, or of torch.func.
        plain = all(type(tensor) in (Tensor, nn.Parameter) for tensor in tensors + ends)
        if self._inside or not self._active or not plain:
            return original(outputs, inputs, *args, **kwargs)
        self._watch()
        event = Event("grad", _here(), create_graph=bool(kwargs.get("create_graph", len(args) > 2 and args[2])))
        roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        event.reached, _ = self._reach(roots, ends)
        self.events.append(event)
        result = self._run(event, roots, original, (outputs, inputs, *args), kwargs)
        if self._details:
            self._follow(event, result)
            self._descend(result, self._sources(ends) | sum(1 << number for number in event.reached))
        return result

    def _run(self, event: Event, roots: list, function: Callable, args: tuple, kwargs: dict) -> object:
        """Call autograd; note what PyTorch says if a tensor that it needs was changed in place."""
        self._inside += 1
        paused = self._pause()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            event.raised = True
            if IN_PLACE.search(str(error)):
                with suppress(AttributeError):  # a node of a kind that keeps its tensors elsewhere
                    self._blame(event, roots, str(error))
            raise
        finally:
            self._inside -= 1
            if paused:
                self._mode.__enter__()

    def _before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        self._stepping += 1
        self._resume = self._pause()
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
        place = _here()
        held = list(parameters_of(optimizer))
        if self._stepping > 1 and all(self._accounts[id(p)].takers for p in held if id(p) in self._accounts):
            return  # an optimizer inside another one, as in SAM
        steps = self._steps.setdefault(id(optimizer), _Steps(optimizer))
        event = Event("step", place)
        for parameter in held:
            if (account := self._accounts.get(id(parameter))) is None:
                continue
            if account.passes:
                self._look(account, parameter, stepping=True)
            account.asked |= parameter.requires_grad
            account.before = -1
            if parameter.grad is None:
                continue
            account.before = parameter._version
            event.reached.add(account.number)
            self._use(steps, account, parameter, place)
        twice = {key for key, times in Counter(map(id, held)).items() if times > 1}
        if numbers := {self._accounts[key].number for key in twice & self._accounts.keys()}:
            steps.held = place, numbers
        steps.passes_before = len(self.passes)
        steps.places[place] += 1
        self.events.append(event)

    def _use(self, steps: _Steps, account: _Account, parameter: Tensor, place: Place) -> None:
        """Record that a step uses the gradient of a parameter."""
        key = id(steps.optimizer)
        # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
        sources = account.passes | ({len(self.passes) - 1} if self._inside else set())
        account.fed |= bool(sources) or not _is_zero(parameter.grad)
        for number in sources:
            self.passes[number].taken[key].add(account.number)
            taker, first = account.takers.setdefault(number, (key, place))
            if taker != key:
                steps.twice[place, first].add(account.number)
            elif number < steps.passes_before:
                steps.stale[number, place].add(account.number)
        if len(sources) > 1:
            steps.sums.setdefault(frozenset(sources), (set(), place))[0].add(account.number)

    def _after_step(self, optimizer: Optimizer, _args: tuple, _kwargs: dict) -> None:
        """Note the versions after the step, and raise those that the step changed behind autograd's back."""
        self._stepping = max(self._stepping - 1, 0)
        steps = self._steps.get(id(optimizer))
        place = next(reversed(steps.places), None) if steps else None
        for parameter in parameters_of(optimizer) if place else ():
            account = self._accounts.get(id(parameter))
            if account is None or account.before < 0:
                continue
            if parameter._version == account.before:
                increment_version(parameter)
                self._raised.add(account.number)
            account.steps.append((parameter._version, place))
            account.before = -1
        if self._resume:
            self._mode.__enter__()
            self._resume = False

    # The details.

    def _detail(self, on: bool) -> None:
        """Begin or end to watch forward passes and single operations."""
        if on:
            self._mode = _Operations(self)
            self._zero_grads = Optimizer.zero_grad, nn.Module.zero_grad
            Optimizer.zero_grad, nn.Module.zero_grad = map(self._watched_zero_grad, self._zero_grads)
            self._forward_hooks = [
                registration.register_module_forward_pre_hook(self._forward_begins),
                registration.register_module_forward_hook(self._forward_ends, always_call=True),
            ]
            self._details = True
            self._mode.__enter__()
            return
        self._pause()
        if self._details:
            self._details = self._resume = False
            Optimizer.zero_grad, nn.Module.zero_grad = self._zero_grads
            for hook in self._forward_hooks:
                hook.remove()

    def _pause(self) -> bool:
        """Stop to watch operations, as autograd's and the optimizers' own; return whether they were watched."""
        watching = self._mode is not None and _python_dispatch._get_current_dispatch_mode() is self._mode
        if watching:
            self._mode.__exit__(None, None, None)
        return watching

    def _watched_compile(self, *args, **kwargs):
        self._detail(False)  # hooks and modes would change what is compiled
        return self._originals[2](*args, **kwargs)

    def _watched_zero_grad(self, original: Callable) -> Callable:
        def zero_grad(of, *args, **kwargs):
            if self._details and not torch.compiler.is_compiling():
                parameters = of.parameters() if isinstance(of, nn.Module) else parameters_of(of)
                event = Event("zero_grad", _here())
                event.reached = {self._accounts[id(p)].number for p in parameters if id(p) in self._accounts}
                self.events.append(event)
            return original(of, *args, **kwargs)

        return zero_grad

    def _is_network(self, module: nn.Module) -> bool:
        return any(module is network for network in self.networks.values())

    def _forward_begins(self, _module: nn.Module, _args: tuple) -> None:
        if not torch.compiler.is_compiling() and not self._inside:
            if self._depth == 0:
                self._watch()
            self._depth += 1
            self._starts.append(len(self.events))

    def _forward_ends(self, module: nn.Module, _args: tuple, output: object) -> None:
        if torch.compiler.is_compiling() or self._inside or not self._starts:
            return
        self._depth -= 1
        event = Event("forward", _here(), module=weakref.ref(module), start=self._starts.pop())
        if self._depth == 0 or self._is_network(module):
            self._follow(event, output)
            self.events.append(event)

    def _happened(self, kind: str, place: Place, accounts: set[int]) -> None:
        """Record an event, or more accounts of the one before."""
        last = self.events[-1] if self.events else None
        if last is None or (last.kind, last.place) != (kind, place):
            self.events.append(last := Event(kind, place))
        last.reached |= accounts

    def _follow(self, event: Event, output: object) -> None:
        """Note whether a backward pass comes through the graph of the output, and whether the graph still exists."""
        for node in {tensor.grad_fn for tensor in _tensors(output)} - {None}:

            def needed(*_: object, event=event) -> None:
                event.needed = True

            self._hooks.append(node.register_prehook(needed))
            event.graph.append(weakref.ref(needed))

    def _operation(self, function: Callable, args: tuple, result: object) -> None:
        """Note an operation: its line, from which parameters its result comes, what it changes in place."""
        if self._inside or self._stepping or torch.compiler.is_compiling():
            return
        frame, _ = _frames()
        sources = self._sources(args)
        self._descend(result, sources)
        if function is torch.ops.aten._local_scalar_dense.default:  # item()
            self._numbers_from |= sources
        if torch.is_grad_enabled():
            node = torch.autograd._get_sequence_nr() - 1  # of this operation, if it has one: no other is newer
            self._lines.setdefault(node, (frame.f_code, frame.f_lasti, frame.f_lineno))
            if function.overloadpacket in SUM_OPERATIONS:
                self._constants.setdefault(node, tuple(map(_constant, args[:2])))
        for index in _written(function):
            for tensor in _tensors(args[index] if index < len(args) else ()):
                if type(tensor) not in (Tensor, nn.Parameter) or tensor.is_inference():
                    continue
                storage, here = _storage(tensor), _expression(frame.f_code, frame.f_lasti, frame.f_lineno)
                self._writes.append(_Write(storage, tensor._version, function.overloadpacket.__name__, here))
                for account in self._accounts.values() if not self._depth else ():
                    parameter = account.parameter() if account.passes else None
                    if parameter is not None and storage == _storage(parameter):
                        self._by_hand.append((account.number, frozenset(account.passes), _here()))
                        self._happened("hand", _here(), {account.number})

    def _line(self, node) -> Place | None:
        """Return where a node of a graph was made, if that was seen."""
        seen = self._lines.get(node._sequence_nr())
        return _expression(*seen) if seen else None

    def _reach(self, roots: list, ends: Iterable[Tensor] = ()) -> tuple[set[int], bool]:
        """Return the accounts that the graph leads to, and whether it leads nowhere else and hides nothing."""
        leaves, whole = _leaves(roots, ends)
        known = {self._accounts[id(leaf)].number for leaf in leaves if id(leaf) in self._accounts}
        return known, whole and all(id(leaf) in self._accounts for leaf in leaves)

    def _loose(self, args: tuple, kwargs: dict) -> tuple[list[weakref.ref], bool]:
        """Return the leaves of a pass that are in no network, and whether its graph shows all leaves."""
        leaves, whole = _leaves(_roots(args, kwargs))
        leaves += [tensor for tensor in _tensors(args or list(kwargs.values())) if tensor.is_leaf]
        return [weakref.ref(leaf) for leaf in leaves if id(leaf) not in self._accounts], whole

    def _sources(self, value: object) -> int:
        """Return the parameters from which tensors were computed, with a graph or without: a bit for each account."""
        sources = 0
        for tensor in _tensors(value):
            if type(tensor) not in (Tensor, nn.Parameter):
                continue
            if tensor.requires_grad and tensor.is_leaf and id(tensor) in self._accounts:
                sources |= 1 << self._accounts[id(tensor)].number
            elif tensor.layout is torch.strided:
                sources |= self._descent.get(tensor.untyped_storage(), 0)
        return sources

    def _descend(self, value: object, sources: int) -> None:
        for tensor in _tensors(value) if sources else ():
            if type(tensor) in (Tensor, nn.Parameter) and tensor.layout is torch.strided:
                storage = tensor.untyped_storage()
                self._descent[storage] = self._descent.get(storage, 0) | sources

    def _terms(self, roots: list) -> list[Term]:
        """Split a loss at its additions, subtractions and scalings; none if it is a single term."""
        terms: list[Term] = []
        stack: list[tuple] = [(node, node) for node in roots]  # (what is to be split, where it became a summand)
        while stack and len(terms) + len(stack) < 32:
            node, first = stack.pop()
            children = [] if isinstance(node, Term) else [child for child, _ in node.next_functions]
            below = [child for child in children if child is not None]
            if isinstance(node, Term):
                terms.append(node)
            elif node.name() in SUMS:
                constants = self._constants.get(node._sequence_nr(), (None, None))
                for child, constant in reversed([*zip_longest(children, constants[: len(children)])]):
                    if child is not None:
                        stack.append((child, child))
                    elif constant is not None and float(constant):
                        sources = self._sources([constant]) if isinstance(constant, Tensor) else self._numbers_from
                        told = Term(self._line(node), "a constant", set(), float(constant), sources=sources)
                        stack.append((told, None))
            elif node.name() in SCALES and len(below) == 1:
                stack.append((below[0], first))
            else:
                reached, whole = self._reach([node])
                name = re.sub(r"Backward\d*$", "", first.name())
                terms.append(Term(self._line(first), name, reached, whole=whole))
        return terms if len(terms) > 1 and not stack else []

    def _blame(self, event: Event, roots: list, message: str) -> None:
        """Find the tensors that fit an error "modified by an inplace operation", who read them and who wrote them."""
        now, expected = map(int, IN_PLACE.search(message).groups())
        blame = _Overwritten(event)
        accounts = [(a, p) for a in self._accounts.values() if (p := a.parameter()) is not None]
        for node in sorted(_nodes(roots), key=lambda node: -node._sequence_nr()):
            for tensor in _spoiled(node, message):
                storage = _storage(tensor)
                of_node = re.sub(r"Backward\d*$", "", node.name())
                blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
                if reader := self._line(node):
                    blame.readers.append(reader)
                blame.behind |= self._reach([node])[0]
                for account, parameter in accounts:
                    if _storage(parameter) == storage:
                        blame.accounts.add(account.number)
                        blame.writers += [place for version, place in account.steps if version > expected]
                        blame.hidden |= account.number in self._raised
                for name, local in _locals():
                    if _storage(local) == storage and local._version == now:
                        blame.storages[storage] = f"`{name}`"
                        break
                written = [w for w in self._writes if w.storage == storage and expected <= w.version < now]
                blame.writers += [write.place for write in written]
                blame.operations |= {write.name for write in written}
        blame.ahead = self._reach(roots)[0]
        self._overwritten.append(blame)

    # What it amounts to.

    def _judge(self, optimizers: list[Optimizer]) -> Iterator[Finding]:
        """Fill in the cells and yield the findings."""
        self._names = {
            network: {self._accounts[id(p)].number: n for n, p in module.named_parameters() if id(p) in self._accounts}
            for network, module in self.networks.items()
        }
        self._by_number = {account.number: account for account in self._accounts.values()}
        for account in list(self._accounts.values()):
            if account.passes and (parameter := account.parameter()) is not None:
                self._look(account, parameter)
        self._step_by_hand()
        self._owned = {
            self._accounts[id(p)].number for opt in optimizers for p in parameters_of(opt) if id(p) in self._accounts
        }
        self._fill()
        idle = dict(self._find_idle(optimizers))
        yield from self._judge_players()
        yield from self._judge_steps()
        for finding, _ in idle.values():
            yield finding
        excused = set().union(*(numbers for _, numbers in idle.values()))
        yield from self._judge_terms(optimizers, excused)
        yield from self._judge_overwritten()
        yield from self._judge_owners(optimizers, excused)
        yield from self._judge_unused()

    def _step_by_hand(self) -> None:
        """Take a write to a parameter that no optimizer steps on for a step."""
        by_hand: set[int] = set()
        for number, passes, place in self._by_hand:
            account = self._by_number.get(number)
            if account is not None and not account.asked:
                by_hand.add(number)
                steps = self._steps.setdefault(0, _Steps(None))
                steps.places[place] += 1
                account.fed = True
                for index in passes:
                    self.passes[index].taken[0].add(number)
        for event in self.events:
            if event.kind == "hand":
                event.kind, event.reached = "step", event.reached & by_hand

    def _fill(self) -> None:
        """Give every event and term a cell for each network; drop the forward passes of anything else."""
        kept: list[tuple[int, Event]] = []
        for index, event in enumerate(self.events):
            taken = set().union(*event.taken.values())
            if event.kind == "forward":
                module = event.module() if event.module else None
                whole = [name for name, network in self.networks.items() if network is module]
                inner = [pair for pair in kept if pair[0] >= event.start and pair[1].kind == "forward"]
                if whole:  # the calls of its parts are not told
                    kept = [pair for pair in kept if pair not in inner or pair[1].whole]
                elif inner:
                    continue
                event.whole = bool(whole)
                mine = (
                    {self._accounts[id(p)].number for p in module.parameters() if id(p) in self._accounts}
                    if module
                    else set()
                )
                event.cells = {
                    n: "here" if (n in whole if whole else mine & ids.keys()) else "-" for n, ids in self._names.items()
                }
                if "here" not in event.cells.values():
                    continue
            else:
                word = {"backward": "wasted", "grad": "read"}.get(event.kind, "here")
                event.cells = {
                    name: "used" if taken & ids.keys() else word if event.reached & ids.keys() else "-"
                    for name, ids in self._names.items()
                }
            for term in event.terms:
                term.cells = {
                    name: "used" if taken & numbers else "wasted" if event.reached & numbers else "-"
                    for name, ids in self._names.items()
                    for numbers in [term.reached & ids.keys()]
                }
            if event.kind != "step" or event.reached:
                kept.append((index, event))
        self.events = [event for _, event in kept]

    def _crossed(self, p: Event) -> Iterator[dict[str, set[int]]]:
        """Yield the groups of networks that a pass moved together though they are of several players.

        Terms of a loss that share no network are not together. Each group gives the optimizers that moved a network.
        """
        moved = {
            name: {optimizer for optimizer, taken in p.taken.items() if taken & p.reached & ids.keys()}
            for name, ids in self._names.items()
        }
        groups = [{name for name, optimizers in moved.items() if optimizers}]
        alike = [p] if p.detailed else [q for q in self.passes if q.place == p.place and q.detailed]
        terms = alike[-1].terms if alike else []
        if terms and all(term.whole for term in terms):
            groups = _united([{name for name, cell in term.cells.items() if cell == "used"} for term in terms])
        for group in groups:
            together = {name: moved[name] for name in self._names if name in group}
            if len(_united(together.values())) > 1:
                yield together

    def _judge_players(self) -> Iterator[Finding]:
        crossed = [list(self._crossed(p)) for p in self.passes]
        mixed: dict[tuple[str, ...], dict[Place, None]] = defaultdict(dict)
        told: set[int] = set()
        for key, steps in self._steps.items():
            for passes, (numbers, place) in steps.sums.items():
                if all(crossed[number] for number in passes):  # one loss in several batches
                    continue
                for number in sorted(passes):
                    for group in crossed[number]:
                        mine = {name for name in group if key in group[name] and numbers & self._names[name].keys()}
                        others = [name for name in group if key not in group[name]]
                        if mine and others:
                            told.add(number)
                            mixed[tuple(group)] |= {self.passes[number].place: None, place: None}
        for networks, places in mixed.items():
            yield self._finding(
                "mixed",
                networks,
                f"one backward pass moved {_and(networks)}, which have different optimizers, and a step added its "
                "gradients to those of another pass.",
                places,
            )
        meant: dict[tuple[str, ...], dict[Place, None]] = defaultdict(dict)
        told_places = {self.passes[number].place for number in told}
        for p, groups in zip(self.passes, crossed, strict=True):
            for group in groups if p.place not in told_places else ():
                meant[tuple(group)][p.place] = None
        for networks, places in meant.items():
            text = f"one backward pass moved {_and(networks)}, which have different optimizers."
            yield self._finding("meant?", networks, text, places)

    def _judge_steps(self) -> Iterator[Finding]:
        for steps in self._steps.values():
            stale: dict[tuple[Place, Place], set[int]] = defaultdict(set)
            for (number, place), numbers in steps.stale.items():
                stale[self.passes[number].place, place] |= numbers
            for places, numbers in stale.items():
                networks = self._networks_of(numbers)
                text = f"an optimizer of {_and(networks)} stepped on gradients older than its own last step."
                yield self._finding("stale", networks, text, places)
            for places, numbers in steps.twice.items():
                networks = self._networks_of(numbers)
                text = f"two optimizers stepped on the same gradients of {_and(networks)}."
                yield self._finding("twice", networks, text, places)
            if steps.held:
                place, numbers = steps.held
                networks = self._networks_of(numbers)
                text = (
                    f"an optimizer holds {self._some(numbers)} of {_and(networks)} twice; each step moves them twice."
                )
                yield self._finding("twice", networks, text, [place], CURES["held"])
        for network, ids in self._names.items():
            missing = {n for n in ids if self._by_number[n].asked and not self._by_number[n].fed}
            if missing:
                places = [
                    place
                    for steps in self._steps.values()
                    if any(
                        id(p) in self._accounts and self._accounts[id(p)].number in missing
                        for p in parameters_of(steps.optimizer)
                    )
                    for place in steps.places
                ]
                text = f"{self._some(missing, network)} of {network} had no gradient whenever their optimizer stepped."
                yield self._finding("unreached", (network,), text, places)

    def _find_idle(self, optimizers: list[Optimizer]) -> Iterator[tuple[int, tuple[Finding, set[int]]]]:
        """Yield the optimizers that never stepped though their parameters got gradients, with these parameters."""
        most = max((sum(steps.places.values()) for steps in self._steps.values()), default=0)
        asked = {number for number, account in self._by_number.items() if account.asked}
        resting = [opt for opt in optimizers if id(opt) not in self._steps]
        held = {
            id(opt): {self._accounts[id(p)].number for p in parameters_of(opt) if id(p) in self._accounts}
            for opt in resting
        }
        for optimizer in resting:
            numbers = held[id(optimizer)] - asked
            passes = [(n, p) for n, p in enumerate(self.passes) if p.reached & numbers and not p.raised]
            dropped = [
                p
                for n, p in passes
                if p.reached <= numbers
                and all(n not in self._by_number[k].passes for k in p.reached & numbers & self._by_number.keys())
            ]
            if self._networks_of(numbers) and passes and (most >= IDLE_AFTER or (most > 1 and dropped)):
                networks = self._networks_of(numbers)
                places = dict.fromkeys(p.place for p in dropped or [p for _, p in passes])
                kind = type(optimizer).__name__
                text = f"the optimizer of {_and(networks)} ({kind}) never stepped; another did {most}x."
                yield id(optimizer), (self._finding("idle", networks, text, places), numbers)

    def _judge_terms(self, optimizers: list[Optimizer], excused: set[int]) -> Iterator[Finding]:
        """Yield the terms that were dead in all passes of their line."""
        held = {id(p) for optimizer in optimizers for p in parameters_of(optimizer)}
        lost = {}
        for p in self.passes:
            loose = {id(leaf) for ref in p.loose if (leaf := ref()) is not None}
            if p.detailed and p.whole and not (p.raised or p.reached or loose & held):
                lost[p.place] = None
        for place in lost:
            yield self._finding("dead", (), "a backward pass reached no parameter of any network.", [place])
        rows: dict[tuple[Place, int, int], list[tuple[Event, Term]]] = defaultdict(list)
        for p in self.passes:
            for index, term in enumerate(p.terms):
                rows[p.place, len(p.terms), index].append((p, term))
        moved = sum(1 << number for number in set().union(*(t for p in self.passes for t in p.taken.values())))
        for (place, _, _), pairs in rows.items():
            constants = {term.value for _, term in pairs}
            if None not in constants:  # one that changes, and comes from what is trained, was cut off
                sources = [term.sources & moved for _, term in pairs]
                dead = len(constants) > 1 and 0.0 not in constants and any(sources)
            else:
                dead = all(
                    term.value is None and term.whole and not term.reached & (excused | set().union(*p.taken.values()))
                    for p, term in pairs
                ) and any(p.taken for p, _ in pairs)
            if dead:
                for _, term in pairs:
                    term.dead = True
                term = pairs[0][1]
                networks = tuple(name for name in self._names if pairs[0][0].cells[name] == "used")
                from_where = f" from {term.place.where}" if term.place else ""
                text = f"the term `{term.name}`{from_where} moves no parameter; the other terms move {_and(networks)}."
                if term.value is not None:
                    text = (
                        f"a term of the sum{from_where} was computed and cut off from its graph; it moves no parameter."
                    )
                yield self._finding("dead", networks, text, [place, *[term.place] * bool(term.place)])
        for p in self.passes:
            p.terms = [term for term in p.terms if term.value is None or term.dead]
            if len(p.terms) < 2:
                p.terms = []

    def _judge_overwritten(self) -> Iterator[Finding]:
        tensors = {
            _storage(tensor): f"`{name}.{inner}`"
            for name, network in self.networks.items()
            for inner, tensor in [*network.named_parameters(), *network.named_buffers()]
        }
        for blame in self._overwritten:
            what = [tensors.get(storage, told) for storage, told in blame.storages.items()] or ["a tensor of its graph"]
            what = _and([*dict.fromkeys(what)][:5])
            writers = [*dict.fromkeys(map(str, blame.writers))] or ["a line that was not seen"]
            readers = [*dict.fromkeys(map(str, blame.readers))][:3] or ["the forward pass"]
            why = "the gradient is computed from the tensor as it was in the forward pass"
            if blame.hidden:
                why += (
                    "; this optimizer does not raise the version of what it changes, so PyTorch alone gives no error "
                    "and a wrong gradient"
                )
            cure = self._cure(blame)
            facts = {
                "wanted by": str(blame.event.place),
                "tensor": what,
                "read by": _and(readers),
                "written by": _and(writers),
                "why": why,
                "cure": cure,
            }
            text = (
                f"{blame.event.place} needs {what} as {_and(readers)} found it; {_and(writers)} has changed it since."
            )
            places = dict.fromkeys([*blame.writers, *blame.readers, blame.event.place])
            networks = self._networks_of(blame.accounts or blame.ahead)
            yield Finding("overwritten", networks, text, tuple(places), cure, tuple(facts.items()), blame.hidden)

    def _cure(self, blame: _Overwritten) -> str:
        """Return the cure that fits the culprit."""
        mine = set(self._networks_of(blame.accounts))
        if blame.operations or not blame.accounts:
            names = _and(sorted(blame.operations)) or "the in-place operation"
            return f"Write to a new tensor in place of {names}: `x = x + y` for `x += y`, `inplace=False`, `clone()`."
        again = "ompute the forward pass again after the step, or step after the last `backward()` that needs it"
        if set(self._networks_of(blame.behind)) - mine:  # the gradient goes through the changed network, to another
            return f"C{again}."
        if set(self._networks_of(blame.ahead)) - mine:
            return f"If this loss is not for {_and(sorted(mine))}, `detach()` what it gets from there. Else c{again}."
        return f"C{again}; `detach()` what comes from an earlier step."

    def _judge_owners(self, optimizers: list[Optimizer], excused: set[int]) -> Iterator[Finding]:
        """Yield what no optimizer holds, and the gradients that none used."""
        frozen = {n for n, a in self._by_number.items() if (p := a.parameter()) is None or not p.requires_grad}
        needless = frozen.difference(*(p.reached for p in self.passes))
        wasted: dict[tuple[str, Place], dict[int, set[int]]] = defaultdict(dict)
        for number, p in enumerate(self.passes):
            for network, ids in self._names.items():
                unused = (p.reached & ids.keys()).difference(excused, *p.taken.values())
                if unused and not p.raised:
                    wasted[network, p.place][number] = unused
        unfrozen = set()
        for network, ids in self._names.items():
            ownerless = ids.keys() - self._owned - needless
            ownerless -= {n for n in ownerless if self._by_number[n].fed}  # stepped by hand
            if not ownerless or not optimizers:  # without any optimizer, no parameter is expected to have one
                continue
            here = [(place, passes) for (name, place), passes in wasted.items() if name == network]
            if not ids.keys() & self._owned and here and self._judges(network, here):
                unfrozen.add(network)
                text = (
                    f"no optimizer holds {network}, and it gets gradients, {sum(len(passes) for _, passes in here)}x."
                )
                yield self._finding("unfrozen", (network,), text, [place for place, _ in here])
                continue
            text = f"{self._some(ownerless, network)} of {network} are held by no optimizer."
            yield self._finding("ownerless", (network,), text, ())
        for (network, place), unused in wasted.items():
            if network in unfrozen:
                continue
            some = self._some(set().union(*unused.values()), network)
            text = f"{some} of {network} got gradients that no optimizer used, {len(unused)}x."
            cure = CURES["wasted"]
            if not self._steps:
                cure = "No optimizer stepped during the audit: audit whole steps."
            elif all(n in self._by_number[k].passes for n, keys in unused.items() for k in keys):
                cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
            yield self._finding("wasted", (network,), text, [place], cure)

    def _judges(self, network: str, here: list) -> bool:
        """Whether all passes that reached the network moved another, and its forward pass came after that one's.

        So it is with the network of a loss. An encoder that no optimizer holds comes before the decoder.
        """
        order = [event for event in self.events if event.kind in ("forward", "backward")]
        for number in {number for _, passes in here for number in passes}:
            p = self.passes[number]
            if "used" not in p.cells.values():
                return False
            end = order.index(p)
            calls = [event.cells for event in order[:end] if event.kind == "forward"]
            mine = max((i for i, cells in enumerate(calls) if cells[network] == "here"), default=None)
            others = [i for i, c in enumerate(calls) for n in c if c[n] == "here" and p.cells[n] == "used"]
            if mine is not None and others and mine < min(others[-1:]):
                return False
        return True

    def _judge_unused(self) -> Iterator[Finding]:
        lines: dict[tuple[Place, str, tuple[str, ...]], list[Event]] = defaultdict(list)
        for event in self.events:
            if event.graph:
                word = "read" if event.kind == "grad" else "here"
                lines[event.place, event.kind, tuple(n for n, cell in event.cells.items() if cell == word)].append(
                    event
                )
        found: dict[tuple[Place, str], dict[str, int]] = defaultdict(dict)
        for (place, kind, networks), events in lines.items():
            gone = [event for event in events if event.gone]
            if gone and not any(event.needed for event in events):
                found[place, kind] |= dict.fromkeys(networks, len(gone))
        for (place, kind), networks in found.items():
            what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
            names = [name for name in self._names if name in networks]
            times = max(networks.values())
            text = f"{what} {_and(names)} built a graph that no backward pass came through, {times}x."
            yield self._finding("unused", names, text, [place])

    def _finding(self, kind, networks, text, places, cure=None) -> Finding:
        return Finding(kind, tuple(networks), text, tuple(dict.fromkeys(places)), cure or CURES[kind])

    def _networks_of(self, numbers: set[int]) -> tuple[str, ...]:
        return tuple(network for network, ids in self._names.items() if numbers & ids.keys())

    def _some(self, numbers: set[int], network: str | None = None) -> str:
        """Return how many parameters, and which: "2 of the 4 parameters (0.weight, 0.bias)" or "all parameters"."""
        names = {k: v for n, ids in self._names.items() if network in (None, n) for k, v in ids.items()}
        chosen = [name for key, name in names.items() if key in numbers]
        if len(chosen) == len(names):
            return "all parameters"
        shown = ", ".join(chosen[:3]) + (", ..." if len(chosen) > 3 else "")
        return f"{len(chosen)} of the {len(names)} parameters ({shown})"


def _frames() -> tuple[FrameType, FrameType | None]:
    """Return the innermost frame of the user's code, and of a library that it called."""
    frame, library = sys._getframe(1), None
    while frame is not None and (origin := _origin(frame.f_code.co_filename)) != "user":
        if origin == "library" and library is None:
            library = frame
        frame = frame.f_back
    return frame or library or sys._getframe(1), library if frame is not None else None


def _here() -> Place:
    """Return the innermost line of the user's code, with the line of the library that it called."""
    frame, library = _frames()
    via = f"{Path(library.f_code.co_filename).name}:{library.f_lineno}" if library is not None else ""
    return Place(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name, via)


def _expression(code: CodeType, instruction: int, line: int) -> Place:
    """Return the place of an instruction: an expression from Python 3.11 on, a line before."""
    columns = None
    if hasattr(code, "co_positions"):
        first, last, begin, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        if None not in (first, last, begin, end):
            line, columns = first, (last, begin, end)
    return Place(code.co_filename, line, code.co_name, "", columns)


OURS = {__file__}
"""Files whose lines are not told: this one, and those of tools that derive from the audit."""
LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


@cache
def _origin(file: str) -> str:
    if file in OURS or file.startswith((f"{torch.__path__[0]}{os.sep}", "<frozen", "<eval_with_key")):
        return "torch"
    if (
        file.startswith(LIBRARIES)
        or f"{os.sep}site-packages{os.sep}" in file
        or f"{os.sep}dist-packages{os.sep}" in file
    ):
        return "library"
    return "user"


@cache
def _code(file: str, line: int, columns: tuple[int, int, int] | None) -> str:
    """Return a line of source without its comment, or an expression."""
    if columns is not None:
        last, begin, end = columns
        lines = [linecache.getline(file, number).encode() for number in range(line, last + 1)]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
        return " ".join(b" ".join(lines).decode(errors="replace").split())
    text = linecache.getline(file, line).strip()
    with suppress(tokenize.TokenError, SyntaxError):  # the line may be the first of several
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                return text[: token.start[1]].rstrip()
    return text


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_subclasses, kind.__subclasses__()))


def parameters_of(optimizer: Optimizer | None) -> Iterator[Tensor]:
    """Yield the parameters that an optimizer holds; none for None."""
    return (parameter for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"])


def _is_zero(grad: Tensor) -> bool:
    return not grad.detach().any()


def _tensors(value: object) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _constant(summand: object) -> object:
    """Return a number or a tensor of one number that needs no gradient; None for all else."""
    if isinstance(summand, Tensor):
        plain = type(summand) is Tensor and summand.numel() == 1 and not summand.is_complex()
        return summand if plain and not summand.requires_grad else None
    return summand if isinstance(summand, float | int) else None


def _storage(tensor: Tensor) -> int:
    """Return the address of the tensor's memory, 0 if it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse tensors, and those of a compiler
        return 0


@cache
def _written(function: object) -> tuple[int, ...]:
    """Return which arguments an operation writes to."""
    arguments = function._schema.arguments if function._schema.is_mutable else ()
    return tuple(i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)


def _roots(args: tuple, kwargs: dict) -> list:
    """Return the nodes at which a call of `torch.autograd.backward` begins."""
    tensors = args[0] if args else kwargs.get("tensors")
    return [tensor.grad_fn for tensor in _tensors(tensors) if tensor.grad_fn is not None]


def _nodes(roots: Iterable, ends: Iterable = ()) -> Iterator:
    """Yield the nodes of a graph, but for those beyond `ends`."""
    seen, stack = set(ends), list(roots)
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack += [child for child, _ in node.next_functions]


def _leaves(roots: Iterable, ends: Iterable[Tensor] = ()) -> tuple[list[Tensor], bool]:
    """Return the leaves that a graph leads to, and whether it shows all of them.

    ends: tensors at which it ends. A function of the user's own, as a checkpoint is, may hide others.
    """
    leaves, whole = [], True
    for node in _nodes(roots, [end.grad_fn for end in ends]):
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.append(leaf)
        elif isinstance(node, torch.autograd.function.BackwardCFunction) and "Compiled" not in node.name():
            whole = False
    return leaves, whole


def _spoiled(node, message: str) -> Iterator[Tensor]:
    """Yield the tensors that a node has saved and that give this very error."""
    names = [name for name in dir(node) if name.startswith("_saved_")] + ["saved_tensors"]
    for name in names:
        try:
            getattr(node, name, None)
        except RuntimeError as error:
            if str(error).split(" Hint:")[0] not in message:
                continue
            raw = getattr(node, f"_raw_{name.removeprefix('_')}" if name == "saved_tensors" else f"_raw{name}")
            for saved in raw if isinstance(raw, tuple | list) else [raw]:
                kept: list[Tensor] = []

                def refuse(_: object, error=error) -> None:
                    raise error  # for whoever calls backward() on this graph again

                with suppress(RuntimeError):  # freed already, or saved by other hooks
                    saved.register_hooks(lambda tensor, kept=kept: kept.append(tensor), refuse)
                yield from kept


def _locals() -> Iterator[tuple[str, Tensor]]:
    """Yield the user's variables that are tensors, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if _origin(frame.f_code.co_filename) == "user":
            yield from ((name, value) for name, value in list(frame.f_locals.items()) if isinstance(value, Tensor))
        frame = frame.f_back


def _united(sets: Iterable[set]) -> list[set]:
    """Unite the sets that have an element in common; leave out empty ones."""
    united: list[set] = []
    for one in sets:
        joined = [other for other in united if other & one]
        united = [other for other in united if not other & one] + [one.union(*joined)] * bool(one)
    return united


def _and(words: Iterable[str]) -> str:
    """Join words: "a", "a and b", "a, b and c"."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
