"""The terms of a loss: the graph, split at sums and scalings."""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from gradient_audit.places import Place
from gradient_audit.trace import OTHER, Term
from gradient_audit.watch.frames import Lines, from_own, packages_of, place_at
from gradient_audit.watch.lineage import Lineage
from gradient_audit.watch.memory import Constant, Memory
from gradient_audit.watch.sources import CALL, FORWARD, NUMBER, PARAMETER, WITHOUT_GRAD
from gradient_audit.watch.tensors import is_zero, nodes_of

SUMS = ("AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0")
SCALES = ("MulBackward0", "DivBackward0", "NegBackward0", "SumBackward0", "MeanBackward0", "RsubBackward1")
SCALES += ("ViewBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0", "CloneBackward0")
SCALES += ("DotBackward0", "MvBackward0", "BmmBackward0", "PermuteBackward0")  # of losses and weights
SUMS_OF_TWO = (torch.ops.aten.add.Tensor, torch.ops.aten.sub.Tensor)
MOST_TERMS = 31  # of a loss, that are told apart: a longer sum is a loop over a batch


class Way(NamedTuple):
    """The way from a loss to a node of its graph: nodes, each with the input that it goes on to."""

    root: int  # which of the losses
    steps: tuple[tuple[object, int], ...]
    node: object
    output: int  # of the node

    def below(self) -> list["Way"]:
        """Return the ways to the inputs of the node."""
        return [
            Way(self.root, (*self.steps, (self.node, index)), child, output)
            for index, (child, output) in enumerate(self.node.next_functions)
            if child is not None
        ]


@dataclass
class Summand:
    """A term, with the way to it if it has a graph."""

    term: Term
    way: Way | None = None
    node: int = -1  # its sequence number
    number: int = -1  # that of the node before it is scaled, if the term is one number
    origins: set[Memory] = field(default_factory=set)  # of a constant: what it was computed from


def summands_of(lineage: Lineage, losses: list[Tensor], caller: Lines) -> list[Summand]:
    """Split a loss at sums and scalings; return its terms, or none. caller: the lines that call for the pass."""
    packages = packages_of(caller)
    found: list[Summand] = []
    memory: set[Memory] = set()  # of all summands
    roots = [(index, loss) for index, loss in enumerate(losses) if loss.grad_fn is not None]
    # Ways to what is to be split, and where it became a summand.
    stack = [(Way(index, (), loss.grad_fn, loss.output_nr), loss.grad_fn) for index, loss in roots]
    while stack and len(found) + len(stack) <= MOST_TERMS:
        way, summand = stack.pop()
        node, below = way.node, way.below()
        constants, with_graph = lineage.sums.get(node._sequence_nr(), ((), set()))
        lines = [lineage.line(w.node, packages) for w in below if w.node.name() not in SUMS]
        lines += [from_own(c.memory.lines, packages)[:1] for c in constants if not c.memory.total]
        # What one call of the user's computes, as a loss of PyTorch's or a library's, is one term.
        line = lineage.line(node, packages)
        if node.name() in SUMS and (not line or line not in lines):
            stack += [(further, further.node) for further in below[::-1]]
            memory |= with_graph
            found += [_of_constant(lineage, constant, node, packages) for constant in constants]
        elif node.name() in SCALES and len(below) == 1:
            stack.append((below[0], summand))
        else:
            name = "a leaf" if hasattr(summand, "variable") else re.sub(r"Backward\d*$", "", summand.name())
            behind = lineage.summands.get(summand._sequence_nr(), Memory())
            term = Term(
                lineage.place_of(summand, caller),
                name,
                sources=frozenset(behind.sources.numbers(PARAMETER)),
                cuts=behind.each_cut(),
                reached=lineage.reach([node]),
                at_zero=lineage.is_at_zero(summand),
            )
            is_number = math.prod(summand._input_metadata[0].shape) == 1
            found.append(Summand(term, way, node._sequence_nr(), summand._sequence_nr() if is_number else -1))
    # A constant that was computed from another summand, as in the straight-through estimator, is on purpose.
    meant = [summand for summand in found if not summand.origins & memory]
    return meant if len(meant) > 1 and not stack else []


def _of_constant(lineage: Lineage, constant: Constant, node: Callable, packages: frozenset[str]) -> Summand:
    memory, sources = constant.memory, constant.sources
    lines = from_own(memory.lines, packages)
    computed = place_at(lines) if lines else lineage.place_of(node)
    place = next((m.rebuilt for m in (memory, *memory.origins) if m.rebuilt), computed)
    frozen = [OTHER] if sources.has(FORWARD) and not constant.value else []  # a zero that a frozen network gave
    term = Term(
        place,
        "a constant",
        constant.value,
        sources=frozenset([*sources.numbers(PARAMETER), *sources.numbers(NUMBER), *frozen]),
        calls=frozenset(sources.numbers(CALL)),
        without_grad=frozenset(sources.numbers(WITHOUT_GRAD)),
        cuts=memory.each_cut(),
    )
    return Summand(term, origins=memory.origins | {memory})


def note_total(lineage: Lineage, function: Callable, args: tuple, result: Tensor, here: Lines) -> None:
    """Note a sum that is one number with a graph; see `Lineage.totals`."""
    if function in SUMS_OF_TWO and torch.is_grad_enabled() and result.numel() == 1:
        summands = [x.grad_fn for x in args[:2] if isinstance(x, Tensor) and x.grad_fn is not None]
        numbers = [{node._sequence_nr() for node in nodes_of([summand], _scaled)} for summand in summands]
        if summands:
            line = here if function is torch.ops.aten.add.Tensor else None  # a difference may be no loss, as TD's
            lineage.totals[torch.autograd._get_sequence_nr() - 1] = line, numbers  # no node is newer


def unused_totals(lineage: Lineage, crossed: set[int]) -> list[Place]:
    """Return the lines whose sums no pass came through, but one through a summand, and never through another.

    crossed: the nodes that passes came through.
    """

    def is_used(numbers: set[int]) -> bool:
        inner = (lineage.totals[number][1] for number in numbers & lineage.totals.keys())
        return bool(numbers & crossed) or any(all(map(is_used, summands)) for summands in inner)

    lines: dict[tuple[Lines, int], list[list[bool]]] = defaultdict(list)
    for node, (line, summands) in lineage.totals.items():
        if line:
            lines[line, len(summands)].append([node in crossed or is_used(numbers) for numbers in summands])
    columns = {line: [*map(any, zip(*rows, strict=True))] for (line, _), rows in lines.items() if len(rows) > 1}
    return [place_at(line) for line, used in columns.items() if any(used) and not all(used)]


def is_start_of_sum(leaf: Tensor, losses: list[Tensor]) -> bool:
    """Whether a leaf is a zero that losses are added to, so that their sum has a graph; they do not change with it."""
    if leaf.numel() != 1 or not is_zero(leaf):  # before the graph is walked, once for each leaf
        return False
    roots = [loss.grad_fn for loss in losses]
    users = {n for n in nodes_of(roots) for child, _ in n.next_functions if getattr(child, "variable", None) is leaf}
    return bool(users) and users <= {n for n in nodes_of(roots, _summed) if _summed(n)}


def _scaled(node) -> list:
    """Return the node that a node scales."""
    below = [child for child, _ in node.next_functions if child is not None]
    return below if node.name() in SCALES and len(below) == 1 else []


def _summed(node) -> list:
    """Return the nodes of which a node is a weighted sum, if that is one number."""
    below = [child for child, _ in node.next_functions if child is not None and node.name() in SUMS]
    return below or _scaled(node) if math.prod(node._input_metadata[0].shape) == 1 else []
