"""Where tensors come from: the lines that made a graph's nodes, the parameters behind a number, the terms of a loss."""

import re
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from gradient_audit.graph import is_zero, nodes_of, storage_of, tensors_in, written_arguments
from gradient_audit.places import Place, current_callers, current_place, expression_place, runs_inside
from gradient_audit.record import OTHER, Account, Pass, Term

SUMS = ("AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0")
SUM_OPERATIONS = (torch.ops.aten.add, torch.ops.aten.add_, torch.ops.aten.sub, torch.ops.aten.sub_)
SCALES = ("MulBackward0", "DivBackward0", "NegBackward0", "SumBackward0", "MeanBackward0", "RsubBackward1")
SCALES += ("ViewBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0", "CloneBackward0")
REPLACING = (torch.ops.aten.copy_.default, torch.ops.aten.zero_.default)
PLAIN = (Tensor, nn.Parameter)
MOST_TERMS = 31  # of a loss, that are told apart: a longer sum is a loop over a batch
MOST_NUMBERS = 64  # in a tensor that is made of numbers, or read as such, to be a term of a loss
# What a number can come from. GRAPH: a forward pass whose graph it has; BLIND: a parameter under no_grad(); NUMBER: a
# parameter, by way of numbers that the script has read.
KINDS = PARAMETER, CALL, FORWARD, GRAPH, BLIND, NUMBER = range(6)


class Way(NamedTuple):
    """The way from a loss to a node of its graph: nodes, each with the input that it goes on to."""

    root: int  # which of the losses
    steps: tuple[tuple[object, int], ...]
    node: object
    output: int  # of the node


def bit(kind: int, number: int) -> int:
    """Return the source with this number, of this kind, as a bit; a set of sources is a sum of such bits."""
    return 1 << (len(KINDS) * number + kind)


def numbers_in(kind: int, sources: int) -> list[int]:
    """Return the numbers of the sources of one kind."""
    digits = bin(sources >> kind)[: 1 : -len(KINDS)].rstrip("0")  # from the lowest, and without "0b"
    return [number for number, digit in enumerate(digits) if digit == "1"]


@dataclass(eq=False)
class Memory:
    """What is known of a storage, whose address may be used again."""

    sources: int = 0
    line: tuple[CodeType, int, int] | None = None  # of a constant: where it was computed
    origins: set["Memory"] = field(default_factory=set)  # likewise: from what
    reader: weakref.ref | None = None  # the tensor that a graph has read, a leaf if there is one
    rebuilt: Place | None = None  # where it was made from numbers that were tensors
    cuts: dict = field(default_factory=dict)  # behind it: (mistake that cut it off a graph, place)


class Lineage:
    """What single operations tell: filled by `note` while the forward passes run."""

    def __init__(self, accounts: dict[int, Account]):
        self.accounts = accounts  # of the watched parameters, by the id of the parameter
        # Memory, version before, name ("" for a step), whether the audit has raised the version, place.
        self.writes: deque[tuple[Memory, int, str, bool, Place]] = deque(maxlen=4096)
        self.lines: dict[int, tuple[tuple[CodeType, int, int], ...]] = {}  # of a node, by its sequence number: callers
        # Likewise, of a sum: what `constant` returns of the summands, and the memory of those that have a graph.
        self.sums: dict[int, tuple[list[tuple[float, int, Memory]], set[Memory]]] = {}
        self.at_zero: set[int] = set()  # likewise, of summands that are zero: such a term may be at its optimum
        self.passed: dict[int, Pass] = {}  # likewise, the last pass that came through a node
        self.memories: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by storage
        self.number_sources, self.number_place, self.numbers = 0, None, set()

    def forget_numbers(self) -> None:
        """Forget the numbers that the script has read, as by item(), since the last pass."""
        self.number_sources, self.number_place, self.numbers = 0, None, set()

    def note_numbers(self, tensor: Tensor) -> None:
        """Note that the script reads the numbers of a tensor."""
        if tensor.numel() <= MOST_NUMBERS and (sources := self.sources_of(tensor)):
            self.number_sources, self.number_place = self.number_sources | sources, current_place()
            self.numbers |= _numbers_in(tensor)

    def note_rebuilt(self, tensor: Tensor, here: tuple) -> None:
        """Note of a new tensor whether its numbers, or what it is the mean of, were read from others."""
        small = storage_of(tensor) is not None and tensor.numel() <= MOST_NUMBERS and tensor.is_floating_point()
        if self.number_sources and small and (tensor.numel() == 1 or _numbers_in(tensor) & self.numbers):
            memory = self.memory_of(tensor)
            memory.sources |= sum(bit(NUMBER, number) for number in numbers_in(PARAMETER, self.number_sources))
            memory.rebuilt = expression_place(*here)

    def knows(self, function: object, args: tuple) -> bool:
        """Whether an operation may tell something: none on data alone does, as those that prepare images."""
        alone = all(
            type(x) is Tensor and not x.requires_grad and storage_of(x) not in self.memories for x in tensors_in(args)
        )
        return bool(self.number_sources) or not alone or function is torch.ops.aten.lift_fresh.default

    def note(self, function: object, args: tuple, result: object, frame: FrameType) -> tuple[set[Memory], int]:
        """Note an operation; return the memory that it wrote to, and the sources of what it only read."""
        here = (frame.f_code, frame.f_lasti, frame.f_lineno)
        indices = written_arguments(function)
        inputs = [x for index, x in enumerate(args) if index not in indices]
        for tensor in _plain_tensors(args) if self.number_sources else ():
            if not tensor.requires_grad and storage_of(tensor) not in self.memories:  # from_numpy() has made it
                self.note_rebuilt(tensor, here)
        read = self.sources_of(inputs)
        targets = [args[index] for index in indices if index < len(args)]
        sources = read | self.sources_of(targets)
        if function in REPLACING and (old := storage_of(args[0])) and old.nbytes() == args[0].nbytes:
            self.memory_of(args[0]).sources, sources = 0, read
        self.derive(result, sources)
        if function is torch.ops.aten._local_scalar_dense.default:  # item()
            self.note_numbers(args[0])
        elif function is torch.ops.aten.lift_fresh.default:  # torch.tensor()
            self.note_rebuilt(result, here)
        tensors = _plain_tensors(args)
        others = len(tensors) < len(tensors_in(args))  # a tensor of a subclass may have a graph, and is not asked
        with_graph = [tensor for tensor in tensors if tensor.requires_grad]
        below = {tensor.grad_fn._sequence_nr() for tensor in with_graph if tensor.grad_fn is not None}
        if torch.is_grad_enabled() and (others or with_graph):
            if function is not torch.ops.aten.detach.default:  # as `.data` calls it
                for tensor in with_graph:
                    memory = self.memory_of(tensor)
                    memory.reader = weakref.ref(tensor) if tensor.is_leaf or not memory.reader else memory.reader
                for number in below & self.passed.keys():
                    self.passed[number].keeper = here
            node = torch.autograd._get_sequence_nr() - 1  # of this operation, if it has one: no other is newer
            if node not in self.lines:
                flat = isinstance(result, Tensor) and result.ndim < 2  # as the terms of a loss, or losses of samples
                self.lines[node] = (flat and current_callers()) or (here,)
            # The sum in a loss of PyTorch's, as the one of kl_div(), has no terms of the user's.
            if function.overloadpacket in SUM_OPERATIONS and not runs_inside(nn.functional.__file__):
                constants = [constant for x in inputs[:2] if (constant := self.constant(x))]
                self.sums.setdefault(node, (constants, set(map(self.memory_of, with_graph))))
                self.at_zero |= {x.grad_fn._sequence_nr() for x in with_graph if x.grad_fn is not None and is_zero(x)}
        elif sources and type(result) in PLAIN:
            memory, origins = self.memory_of(result), set(map(self.memory_of, tensors))
            memory.line, memory.origins = here, origins.union(*(origin.origins for origin in origins))
        cuts = {thing: None for tensor in tensors if type(tensor) is Tensor for thing in self.memory_of(tensor).cuts}
        if cut := self.cut(function, tensors, result, here):
            cuts[cut, expression_place(*here)] = None
        weights = {self.memory_of(tensor) for tensor in tensors if type(tensor) is nn.Parameter}  # not their views
        for memory in {*map(self.memory_of, _plain_tensors(result))} - weights if cuts else ():
            memory.cuts |= cuts
        written = [tensor for tensor in _plain_tensors(targets) if not tensor.is_inference()]  # those have no version
        for tensor in written:
            if (memory := self.memory_of(tensor)).reader:  # what comes before all forward passes is not to blame
                hidden, name = self.raise_version(memory, tensor), function.overloadpacket.__name__
                version = tensor._version if hidden is None else hidden
                self.writes.append((memory, version, name, hidden is not None, expression_place(*here)))
        return set(map(self.memory_of, written)), read

    @staticmethod
    def raise_version(memory: Memory, written: Tensor) -> int | None:
        """Raise the version that autograd compares, where one through `.data` raises another; return the old one."""
        tensor = None if runs_inside("distributed") else memory.reader()  # FSDP fills its weights anew
        if tensor is None or not (tensor.is_leaf and tensor.is_contiguous()):
            return None
        version, start = tensor._version, tensor.data_ptr()
        with torch.autograd._unsafe_preserve_version_counter(written):
            increment_version(written)
            apart = tensor._version == version
        if not (apart and start <= written.data_ptr() < start + tensor.nbytes):
            return None
        increment_version(tensor)
        return version

    def cut(self, function: object, tensors: list[Tensor], result: object, here: tuple) -> str:
        """Return the mistake that it may be if an operation cuts its result off the graph, or ""."""
        if not any(tensor.requires_grad for tensor in tensors):
            return "loss-rebuilt" if function is torch.ops.aten.lift_fresh.default else ""  # torch.tensor()
        if not torch.is_grad_enabled():
            return "no-graph"
        if function is torch.ops.aten.detach.default:  # autograd itself detaches the result that an operation saves
            made = tensors[0].grad_fn and self.line(tensors[0].grad_fn)
            return "" if made == here else "detached-fakes"
        smooth = any(tensor.is_floating_point() or tensor.is_complex() for tensor in _plain_tensors(result))
        return "" if smooth else "step-function"

    def memory_of(self, tensor: Tensor) -> Memory:
        """Return what is known of the tensor's storage; nothing, if it has none."""
        storage = storage_of(tensor)
        return Memory() if storage is None else self.memories.setdefault(storage, Memory())

    def line(self, node) -> tuple[CodeType, int, int] | None:
        """Return the innermost line of the user's that made a node of a graph, if that was seen."""
        return self.lines.get(node._sequence_nr(), (None,))[0]

    def line_of(self, node, code: CodeType | None = None) -> Place | None:
        """Return where a node of a graph was made, if that was seen; where `code` called for it, if it did."""
        if (inner := self.line(node)) is None:
            return None
        caller = next((line for line in self.lines[node._sequence_nr()] if line[0] is code), inner)
        via = "" if caller == inner else expression_place(*inner).where
        return expression_place(*caller)._replace(via=via)

    def reach(self, roots: list) -> set[int]:
        """Return the accounts that the graph leads to, and OTHER for other leaves."""
        leaves = [node.variable for node in nodes_of(roots) if hasattr(node, "variable")]
        return {self.accounts[id(x)].number if id(x) in self.accounts else OTHER for x in leaves}

    def sources_of(self, value: object) -> int:
        """Return what tensors were computed from, with a graph or without."""
        sources = 0
        for tensor in _plain_tensors(value):
            if tensor.requires_grad and tensor.is_leaf and id(tensor) in self.accounts:
                number = self.accounts[id(tensor)].number
                sources |= bit(PARAMETER, number) | (0 if torch.is_grad_enabled() else bit(BLIND, number))
            else:
                own = self.memory_of(tensor).sources
                cut = () if tensor.requires_grad else numbers_in(GRAPH, own)  # as of a detached alias of the storage
                sources |= own - sum(bit(GRAPH, number) for number in cut)
        return sources

    def derive(self, value: object, sources: int, cuts: Iterable[tuple[str, Place]] = ()) -> None:
        for tensor in _plain_tensors(value) if sources else ():
            self.memory_of(tensor).sources |= sources
            self.memory_of(tensor).cuts |= dict.fromkeys(cuts)

    def terms_of(self, losses: list[Tensor], code: CodeType) -> list[tuple[Term, Way | None]]:
        """Split a loss at sums and scalings; return its terms, with the ways to those that have a graph, or none."""
        terms: list[tuple[Term, Way | None, set[Memory]]] = []  # and, of a constant, what it was computed from
        memory: set[Memory] = set()  # of all summands
        roots = [(index, loss) for index, loss in enumerate(losses) if loss.grad_fn is not None]
        # Ways to what is to be split, and where it became a summand.
        stack = [(Way(index, (), loss.grad_fn, loss.output_nr), loss.grad_fn) for index, loss in roots]
        while stack and len(terms) + len(stack) <= MOST_TERMS:
            way, summand = stack.pop()
            node = way.node
            below = [
                Way(way.root, (*way.steps, (node, index)), child, output)
                for index, (child, output) in enumerate(node.next_functions)
                if child is not None
            ]
            constants, with_graph = self.sums.get(node._sequence_nr(), ((), set()))
            lines = [self.line(w.node) for w in below if w.node.name() not in SUMS] + [c.line for *_, c in constants]
            # What one call of the user's computes, as a loss of PyTorch's or a library's, is one term.
            if node.name() in SUMS and (self.line(node) is None or self.line(node) not in lines):
                stack += [(further, further.node) for further in below[::-1]]
                memory |= with_graph
                for value, sources, constant in constants:
                    computed = expression_place(*constant.line) if constant.line else self.line_of(node)
                    place = next((m.rebuilt for m in (constant, *constant.origins) if m.rebuilt), computed)
                    terms.append((Term(place, "a constant", -1, value, sources), None, constant.origins | {constant}))
            elif node.name() in SCALES and len(below) == 1:
                stack.append((below[0], summand))
            else:
                name = "a leaf" if hasattr(summand, "variable") else re.sub(r"Backward\d*$", "", summand.name())
                term = Term(self.line_of(summand, code), name, node._sequence_nr(), reached=self.reach([node]))
                term.at_zero = summand._sequence_nr() in self.at_zero
                terms.append((term, way, set()))
        # A constant that was computed from another summand, as in the straight-through estimator, is on purpose.
        meant = [(term, way) for term, way, origins in terms if not origins & memory]
        return meant if len(meant) > 1 and not stack else []

    def constant(self, summand: object) -> tuple[float, int, Memory] | None:
        """Return the value, or sum, of a summand without a graph, its sources and memory; None for others and for 0."""
        if isinstance(summand, float | int):
            return (float(summand), self.number_sources, Memory(rebuilt=self.number_place)) if summand else None
        if type(summand) is not Tensor or summand.requires_grad or summand.is_complex() or summand.is_meta:
            return None
        sources = self.sources_of(summand)
        value = float(summand.detach().double().sum()) if sources or summand.numel() == 1 else 0.0
        return (value, sources, self.memory_of(summand)) if value else None


def _plain_tensors(value: object) -> list[Tensor]:
    """Return the tensors in `value` but those of a subclass, as a compiler's."""
    return [tensor for tensor in tensors_in(value) if type(tensor) in PLAIN]


def _numbers_in(tensor: Tensor) -> set:
    """Return the numbers of a tensor, by the method that the audit does not watch."""
    return set() if tensor.is_meta else {*torch._C.TensorBase.tolist(tensor.detach().flatten())}
