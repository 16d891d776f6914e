"""Measuring: the gradient of each term of a loss, computed before the script's own pass, where that changes nothing."""

import functools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.autograd import function, grad, graph  # before `watch` wraps them
from torch.autograd.graph import GradientEdge
from torch.utils import _python_dispatch as dispatch

from gradient_audit.budget import Activity
from gradient_audit.graph import nodes_of
from gradient_audit.guard import watch_calls
from gradient_audit.lineage import Way
from gradient_audit.mistakes import raised
from gradient_audit.places import PACKAGE, Place, current_place, runs_inside
from gradient_audit.record import Pass

PASSES = 2  # of a line, that are measured: the first may be special
MOST_BYTES = 2**30  # of the gradients of all terms, which exist at one time
# PyTorch's own nodes; those of an autograd.Function, of a checkpoint that is one, and of a compiled region have others.
PURE = re.compile(r"\w+Backward\d+|torch::autograd::(AccumulateGrad|CopySlices|CopyBackwards)|CopySlices|CopyBackwards")


class Measure:
    """Fills in `grams` of a pass: by parameter, the products of the gradients of the loss's terms with one another."""

    def __init__(self, activity: Activity):
        self.activity = activity
        self.obstacle = ""  # what was seen that makes a pass of the audit's own visible to the script
        self.hooked: set[int] = set()  # sequence numbers of the nodes whose tensors have hooks
        self.times: Counter[Place] = Counter()  # that a line was measured
        self.zeros: dict[Place, set[int]] = {}  # by line: the terms whose gradient was exactly zero each time

    def start(self, hooks: ExitStack) -> None:
        """Watch what is registered from now on."""
        self.first = torch.autograd._get_sequence_nr()
        for name in ("register_hook", "retain_grad"):
            watch_calls(hooks, Tensor, name, self.note_hook)
        refuse = functools.partial(self.refuse, "saved tensors have hooks, as those of a checkpoint")
        watch_calls(hooks, graph.saved_tensors_hooks, "__enter__", refuse)
        watch_calls(hooks, torch._C._autograd.SavedTensor, "register_hooks", refuse)
        register = vars(function._HookMixin)["_register_hook"]  # PyTorch calls it for hooks on nodes

        def registered(*args):
            if not sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
                self.refuse("a node has a hook")
            return register.__func__(*args)

        hooks.callback(setattr, function._HookMixin, "_register_hook", register)
        function._HookMixin._register_hook = staticmethod(registered)

    def refuse(self, obstacle: str, *_: object) -> None:
        """Measure nothing from now on, unless it is the audit that looks at saved tensors."""
        self.obstacle = self.obstacle if runs_inside(raised.__file__) else obstacle

    def note_hook(self, tensor: Tensor, *_: object) -> None:
        """Note that a tensor has a hook, or keeps its gradient."""
        if tensor.grad_fn is not None:
            self.hooked.add(tensor.grad_fn._sequence_nr())

    def is_hooked(self, nodes: list) -> bool:
        """Return whether code of the script's runs when a pass comes through a graph, as far as is known."""
        tensors = [node.variable for node in nodes if hasattr(node, "variable")]
        hooked = any(node._sequence_nr() in self.hooked for node in nodes if not hasattr(node, "variable"))
        own = any(not PURE.fullmatch(node.name()) for node in nodes)
        return bool(self.obstacle) or own or hooked or any(tensor._backward_hooks for tensor in tensors)

    def hindrance(self, roots: list, ways: list[Way], parameters: list[Tensor]) -> str:
        """Return why a pass of the audit's own could change something, or ""."""
        nodes = [*nodes_of(roots)]
        tensors = [node.variable for node in nodes if hasattr(node, "variable")]
        numbers = {node._sequence_nr() for node in nodes if not hasattr(node, "variable")}
        size = len(ways) * sum(parameter.nbytes for parameter in parameters)
        hooked = self.obstacle or "code of the script's, as an autograd.Function or a hook, is in the graph"
        reasons = {
            hooked: self.is_hooked(nodes),
            "the graph is older than the audit": min(numbers, default=self.first) < self.first,
            "a mode sees each operation": dispatch._get_current_dispatch_mode() is not None,
            "there are several processes": torch.distributed.is_available() and torch.distributed.is_initialized(),
            "anomaly detection is on": torch.is_anomaly_enabled(),
            "a tensor is of another kind": any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors),
            "a tensor has no numbers": any(tensor.is_meta for tensor in tensors),
            "the gradients take over 1 GiB": size > MOST_BYTES,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    @contextmanager
    def at_work(self, event: Pass) -> Iterator[None]:
        """Compute without a trace; what raises is discarded: the script's own pass raises it, if it is the script's."""
        self.activity.measuring = True
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                yield
        except Exception as error:
            event.unmeasured = f"measuring raised {type(error).__name__}"
        finally:
            self.activity.measuring = False

    def terms(self, event: Pass, losses: list[Tensor], ways: list[Way], parameters: dict, given: list) -> None:
        """Measure the terms of a pass, unless its line was measured often enough.

        ways: from the losses to the terms. parameters: by account. given: the gradient of each loss; None: it is one.
        """
        enough = self.times[event.place] >= PASSES and not self.zeros[event.place]
        if len(ways) < 2 or not parameters or enough:
            return
        leaves = [*parameters.values()]
        event.unmeasured = self.hindrance([loss.grad_fn for loss in losses], ways, leaves)
        if event.unmeasured:
            return
        with self.at_work(event):
            pairs = zip(losses, given, strict=True)
            starts = [torch.ones_like(loss) if start is None else start for loss, start in pairs]
            rows = [gradients(way, starts, leaves) for way in ways]
            event.weightless = {index for index, row in enumerate(rows) if row is None}
            columns = zip(*(row or [None] * len(leaves) for row in rows), strict=True)
            event.grams = {number: gram(column) for number, column in zip(parameters, columns, strict=True)}
        if event.unmeasured:
            return
        zeros = {index for index in range(len(ways)) if not any(rows[index][index] for rows in event.grams.values())}
        self.zeros[event.place] = zeros & self.zeros.get(event.place, zeros)
        self.times[event.place] += 1

    def pardon(self, losses: list[Tensor], given: list, writes: list[tuple[Tensor, int]]) -> list[tuple[Tensor, int]]:
        """Lower the versions that the audit has raised of tensors to whose readers a gradient of exactly zero comes.

        writes: tensors, with their versions before. Return the tensors with the versions that they are to have again.
        """
        roots, lowered = [loss.grad_fn for loss in losses], []
        nodes = nodes_of(roots) if writes else ()
        errors = [(node, str(error)) for node in nodes for _, error in raised.saved_errors(node)]
        if not errors or self.hindrance(roots, [], []):
            return lowered
        with self.at_work(Pass("backward", current_place())):
            ends = [GradientEdge(n, i) for n in {node for node, _ in errors} for i in range(len(n._input_metadata))]
            if any(g is not None and g.any() for g in grad(losses, ends, given, retain_graph=True, allow_unused=True)):
                return lowered
            for now, expected in {tuple(map(int, raised.IN_PLACE.search(text).groups())) for _, text in errors}:
                for tensor in {id(tensor): tensor for tensor, _ in writes if tensor._version == now}.values():
                    if sum(one is tensor and before >= expected for one, before in writes) == now - expected:
                        lowered.append((tensor, now))
                        set_version(tensor, expected)
        return lowered


def set_version(tensor: Tensor, version: int) -> None:
    """Set the version that autograd compares."""
    try:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
    except TypeError:  # until PyTorch 2.6
        torch._C._autograd._unsafe_set_version_counter(tensor, version)


def gradients(way: Way, starts: list[Tensor], leaves: list[Tensor]) -> tuple[Tensor | None, ...] | None:
    """Return the gradient that comes to the leaves by way of one term; None if the loss gives that a weight of zero.

    starts: the gradient of each loss.
    """
    gradient = starts[way.root]
    for node, index in way.steps:
        results = node(gradient)  # no hook is called
        gradient = results[index] if isinstance(results, tuple) else results
    if gradient is None or not gradient.any():
        return None
    return grad([GradientEdge(way.node, way.output)], leaves, [gradient], retain_graph=True, allow_unused=True)


def gram(gradients: tuple[Tensor | None, ...]) -> list[list[float]]:
    """Return the products of gradients with one another; None is all zeros."""
    flat = [None if g is None else torch.view_as_real(g) if g.is_complex() else g for g in gradients]
    flat = [g if g is None else (g.to_dense() if g.is_sparse else g).flatten() for g in flat]
    there = [index for index, g in enumerate(flat) if g is not None]
    products = [[0.0] * len(flat) for _ in flat]
    if there:
        rows = torch.stack([(flat[index].cpu() if flat[index].is_mps else flat[index]).double() for index in there])
        for index, row in zip(there, (rows @ rows.T).tolist(), strict=True):
            for other, product in zip(there, row, strict=True):
                products[index][other] = product
    return products
