"""Measuring: the gradient of each term of a loss, computed before the script's own pass, where that changes nothing."""

import functools
import re
import sys
import warnings
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.autograd import function, grad, graph  # before `watch` wraps them
from torch.autograd.graph import GradientEdge
from torch.utils import _python_dispatch as dispatch

from gradient_audit.places import Place
from gradient_audit.watch.frames import PACKAGE
from gradient_audit.watch.guard import guarded, watch_calls
from gradient_audit.watch.session import Session
from gradient_audit.watch.splitting import Summand, Way

PASSES = 2  # of a line, that are measured: the first may be special
MOST_BYTES = 2**30  # of the gradients of all terms, which exist at one time
# PyTorch's own nodes; those of an autograd.Function, of a checkpoint that is one, and of a compiled region have others.
PURE = re.compile(r"\w+Backward\d+|torch::autograd::(AccumulateGrad|CopySlices|CopyBackwards)|CopySlices|CopyBackwards")
Loss = tuple[list[Tensor], list[Tensor | None]]  # tensors, and the gradient of each; None: it is one


class Measure:
    """Measures the terms of a loss, before its pass."""

    def __init__(self, session: Session):
        self.guard, self.activity = session.guard, session.activity
        self.obstacle = ""  # what was seen that makes a pass of the audit's own visible to the script
        self.hooked: set[int] = set()  # sequence numbers of the nodes whose tensors have hooks
        # By line and number of terms (a penalty may come only in some steps): for each time that it was measured, the
        # terms whose gradient was exactly zero.
        self.zeros: dict[tuple[Place, int], list[set[int]]] = defaultdict(list)

    def start(self, hooks: ExitStack) -> None:
        """Watch what is registered from now on."""
        self.first = torch.autograd._get_sequence_nr()
        for name in ("register_hook", "retain_grad"):
            watch_calls(hooks, Tensor, name, self.note_hook)
        refuse = functools.partial(self.refuse, "saved tensors have hooks, as those of a checkpoint")
        watch_calls(hooks, graph.saved_tensors_hooks, "__enter__", refuse)
        watch_calls(hooks, torch._C._autograd.SavedTensor, "register_hooks", refuse)
        refuse = functools.partial(self.refuse, "a node has a hook")
        watch_calls(hooks, function._HookMixin, "_register_hook", refuse)  # PyTorch calls it for nodes

    @guarded
    def refuse(self, obstacle: str, *_: object, **__: object) -> None:
        """Measure nothing from now on, unless the hook is one of the audit's."""
        if not sys._getframe(3).f_code.co_filename.startswith(PACKAGE):
            self.obstacle = obstacle

    @guarded
    def note_hook(self, tensor: Tensor, *_: object, **__: object) -> None:
        """Note that a tensor has a hook, or keeps its gradient."""
        if tensor.grad_fn is not None:
            self.hooked.add(tensor.grad_fn._sequence_nr())

    def hindrance(self, nodes: list) -> tuple[bool, str]:
        """Return whether code of the script's runs in a pass through a graph, and why one of the audit's must not."""
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        numbers = {node._sequence_nr() for node in nodes if not hasattr(node, "variable")}
        own = any(not PURE.fullmatch(node.name()) for node in nodes) or any(leaf._backward_hooks for leaf in leaves)
        hooked = bool(self.obstacle or own or numbers & self.hooked)
        reasons = {
            self.obstacle or "code of the script's, as an autograd.Function or a hook, is in the graph": hooked,
            "the graph is older than the audit": min(numbers, default=self.first) < self.first,
            "a mode sees each operation": dispatch._get_current_dispatch_mode() is not None,
            "there are several processes": torch.distributed.is_available() and torch.distributed.is_initialized(),
            "anomaly detection is on": torch.is_anomaly_enabled(),
            "a tensor is of another kind": any(type(leaf) not in (Tensor, nn.Parameter) for leaf in leaves),
            "a tensor has no numbers": any(leaf.is_meta for leaf in leaves),
        }
        return hooked, next((reason for reason, holds in reasons.items() if holds), "")

    def begin(
        self, place: Place, nodes: list, loss: Loss, summands: list[Summand], leaves: dict[int, Tensor]
    ) -> tuple[bool, str]:
        """Look at the graph of a pass before it runs; measure its terms, unless its line was measured often enough.

        summands: that have a graph. leaves: by number, to which the pass comes. Returns whether code of the script's
        runs in the pass, and why nothing was measured.
        """
        hooked, hindrance = self.hindrance(nodes)
        zeros = self.zeros[place, len(summands)]
        if len(summands) < 2 or not leaves or (len(zeros) >= PASSES and not set.intersection(*zeros)):
            return hooked, ""
        if not hindrance and len(summands) * sum(leaf.nbytes for leaf in leaves.values()) > MOST_BYTES:
            hindrance = "the gradients take over 1 GiB"
        if hindrance:
            return hooked, hindrance
        self.activity.measuring = True
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                measure(loss, summands, leaves)
        except Exception as error:  # the script's own pass raises it, if it is the script's
            return hooked, f"measuring raised {type(error).__name__}"
        finally:
            self.activity.measuring = False
        sizes = [[square for square, _ in summand.term.measured.values()] for summand in summands]
        zeros.append({index for index, squares in enumerate(sizes) if not any(squares)})
        return hooked, ""


def measure(loss: Loss, summands: list[Summand], leaves: dict[int, Tensor]) -> None:
    """Compute the gradients of each term, and note in it what they are."""
    starts = [torch.ones_like(one) if start is None else start for one, start in zip(*loss, strict=True)]
    rows = [gradients(summand.way, starts, [*leaves.values()]) for summand in summands]
    columns = zip(*(row or [None] * len(leaves) for row in rows), strict=True)
    found = [products(column, leaf) for column, leaf in zip(columns, leaves.values(), strict=True)]
    for summand, row, measured in zip(summands, rows, zip(*found, strict=True), strict=True):
        measured = dict(zip(leaves, measured, strict=True))
        summand.term = replace(summand.term, measured=measured, weightless=row is None)


def gradients(way: Way, starts: list[Tensor], leaves: list[Tensor]) -> tuple[Tensor | None, ...] | None:
    """Return the gradient that comes to the leaves by way of one term; None if the loss gives that a weight of zero."""
    gradient = starts[way.root]  # of that loss
    for node, index in way.steps:
        results = node(gradient)  # no hook is called
        gradient = results[index] if isinstance(results, tuple) else results
        if gradient is None:
            return None
        child, output = node.next_functions[index]
        gradient = gradient.sum_to_size(child._input_metadata[output].shape)  # of what was broadcast, as autograd does
    if not gradient.any():
        return None
    return grad([GradientEdge(way.node, way.output)], leaves, [gradient], retain_graph=True, allow_unused=True)


def products(column: tuple[Tensor | None, ...], leaf: Tensor) -> list[tuple[float, float]]:
    """Return, of the gradients that terms give to a leaf, the square of each, and its product with their sum."""
    device = "cpu" if leaf.is_mps else leaf.device  # which has no doubles
    dtype = torch.cdouble if leaf.is_complex() else torch.double
    rows = torch.zeros(len(column), leaf.numel(), dtype=dtype, device=device)
    for row, gradient in zip(rows, column, strict=True):
        if gradient is not None:
            row.copy_(gradient.to_dense().flatten())
    sums = rows.conj() * rows.sum(0)
    return [*zip((rows.abs() ** 2).sum(1).tolist(), sums.real.sum(1).tolist(), strict=True)]
