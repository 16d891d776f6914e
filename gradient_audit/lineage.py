"""Where tensors come from: the lines that made a graph's nodes, the parameters behind a number, the terms of a loss."""

import re
import weakref
from collections import deque
from itertools import count, zip_longest
from types import CodeType, FrameType

import torch
from torch import Tensor, nn

from gradient_audit.graph import leaves_of, storage_address, storage_of, tensors_in, written_arguments
from gradient_audit.places import Place, current_callers, expression_place
from gradient_audit.record import Account, Term, Write

SUMS = ("AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0")
SUM_OPERATIONS = (torch.ops.aten.add, torch.ops.aten.add_, torch.ops.aten.sub, torch.ops.aten.sub_)
SCALES = ("MulBackward0", "DivBackward0", "NegBackward0", "SumBackward0", "MeanBackward0", "RsubBackward1")
SCALES += ("ViewBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0", "CloneBackward0")
# What a number can come from: a parameter, a call of autograd, a forward pass, a parameter under no_grad().
PARAMETER, CALL, FORWARD, BLIND = range(4)


def bit(kind: int, number: int) -> int:
    """Return the source with this number, of this kind, as a bit; a set of sources is a sum of such bits."""
    return 1 << (4 * number + kind)


def of_kind(kind: int, sources: int) -> int:
    """Return the sources of one kind."""
    every_fourth_bit = int("1" * (sources.bit_length() // 4 + 1), 16)
    return sources & (every_fourth_bit << kind)


def numbers_in(kind: int, sources: int) -> list[int]:
    """Return the numbers of the sources of one kind."""
    bits = of_kind(kind, sources) >> kind
    return [number for number in range(bits.bit_length() // 4 + 1) if bits >> (4 * number) & 1]


class Lineage:
    """What single operations tell: filled by `note` while the forward passes run."""

    def __init__(self, accounts: dict[int, Account]):
        self.accounts = accounts  # of the watched parameters, by the id of the parameter
        self.writes: deque[Write] = deque(maxlen=4096)
        self.lines: dict[int, tuple[tuple[CodeType, int, int], ...]] = {}  # of a node, by its sequence number: callers
        self.constants: dict[int, tuple] = {}  # likewise, the summands that need no gradient
        self.summed: dict[int, set[int]] = {}  # likewise, the memory of the summands
        self.numbers = count(1)
        self.serials: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of a storage: addresses are used again
        self.descent: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of a storage: its sources
        self.number_sources = 0  # the sources of what item() has read since the last pass
        self.makers: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of a constant: its line, what it is of

    def note(self, function: object, args: tuple, result: object, frame: FrameType) -> tuple[list[int], int]:
        """Note an operation; return the addresses of the storages it wrote to, and the sources of what it only read."""
        sources = self.sources_of(args)
        self.derive(result, sources)
        indices = written_arguments(function)
        read = sources
        if indices and sources:
            read = self.sources_of([x for index, x in enumerate(args) if index not in indices])
        if function is torch.ops.aten._local_scalar_dense.default:  # item()
            self.number_sources |= sources
        if torch.is_grad_enabled():
            node = torch.autograd._get_sequence_nr() - 1  # of this operation, if it has one: no other is newer
            if node not in self.lines:
                scalar = isinstance(result, Tensor) and result.ndim == 0  # as the terms of a loss are
                here = (frame.f_code, frame.f_lasti, frame.f_lineno)
                self.lines[node] = (scalar and current_callers()) or (here,)
            if function.overloadpacket in SUM_OPERATIONS:
                pair = args[:2]
                self.constants.setdefault(node, (self.constant(pair[0]), self.constant(pair[-1])))
                self.summed[node] = {self.serial(x) for x in _plain_tensors(pair) if x.requires_grad}
        if sources:
            self.note_constant(args, result, frame)
        written = []
        for index in indices:
            for tensor in _plain_tensors(args[index] if index < len(args) else ()):
                if tensor.is_inference():  # it has no version
                    continue
                storage = storage_address(tensor)
                place = expression_place(frame.f_code, frame.f_lasti, frame.f_lineno)
                self.writes.append(Write(storage, tensor._version, function.overloadpacket.__name__, place))
                written.append(storage)
        return written, read

    def note_constant(self, args: tuple, result: object, frame: FrameType) -> None:
        """Note the line of a result that has no graph, and the memory of what it was computed from."""
        tensors = tensors_in(args)
        memory = storage_of(result) if isinstance(result, Tensor) else None
        if memory is None or (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
            return
        storages = set(map(self.serial, tensors))
        for storage in map(storage_of, tensors):
            if storage is not None and storage in self.makers:
                storages |= self.makers[storage][1]
        self.makers[memory] = (frame.f_code, frame.f_lasti, frame.f_lineno), storages

    def serial(self, tensor: Tensor) -> int:
        """Return the number of the tensor's memory."""
        storage = storage_of(tensor)
        return next(self.numbers) if storage is None else self.serials.setdefault(storage, next(self.numbers))

    def line_of(self, node, code: CodeType | None = None) -> Place | None:
        """Return where a node of a graph was made, if that was seen; where `code` called for it, if it did."""
        seen = self.lines.get(node._sequence_nr())
        if not seen:
            return None
        inner, caller = (expression_place(*next((c for c in seen if c[0] is code), seen[0])) for code in (None, code))
        return caller if caller == inner else caller._replace(via=inner.where)

    def reach(self, roots: list) -> tuple[set[int], bool]:
        """Return the accounts that the graph leads to, and whether there are other leaves."""
        leaves = leaves_of(roots)
        known = {self.accounts[id(leaf)].number for leaf in leaves if id(leaf) in self.accounts}
        return known, any(id(leaf) not in self.accounts for leaf in leaves)

    def sources_of(self, value: object) -> int:
        """Return what tensors were computed from, with a graph or without."""
        sources = 0
        for tensor in _plain_tensors(value):
            if tensor.requires_grad and tensor.is_leaf and id(tensor) in self.accounts:
                sources |= bit(PARAMETER, number := self.accounts[id(tensor)].number)
                sources |= 0 if torch.is_grad_enabled() else bit(BLIND, number)
            elif (storage := storage_of(tensor)) is not None:
                own = self.descent.get(storage, 0)
                if own and not tensor.requires_grad:  # a detached alias shares the storage, but has no graph
                    own &= ~of_kind(FORWARD, own)
                sources |= own
        return sources

    def derive(self, value: object, sources: int) -> None:
        for tensor in _plain_tensors(value) if sources else ():
            if (storage := storage_of(tensor)) is not None:
                self.descent[storage] = self.descent.get(storage, 0) | sources

    def begin_gradient(self, gradient: Tensor, sources: int) -> None:
        """Note that a gradient is what these calls of autograd have left in it."""
        if type(gradient) is Tensor and (storage := storage_of(gradient)) is not None:
            self.descent[storage] = sources

    def terms_of(self, roots: list, code: CodeType) -> list[Term]:
        """Split a loss at its additions, subtractions and scalings; none if it is a single term, or more than 31.

        code: of the caller of `backward()`; a term that a function computed for it is told by the call.
        """
        terms: list[Term] = []
        memory: set[int] = set()  # of all summands
        stack: list[tuple] = [(node, node) for node in roots]  # (what is to be split, where it became a summand)
        while stack and len(terms) + len(stack) < 32:
            node, summand = stack.pop()
            if isinstance(node, Term):
                terms.append(node)
                continue
            children = [child for child, _ in node.next_functions]
            below = [child for child in children if child is not None]
            if node.name() in SUMS and not self.is_inside_call(node, below):
                stack += self.summands(node, children)
                memory |= self.summed.get(node._sequence_nr(), set())
            elif node.name() in SCALES and len(below) == 1:
                stack.append((below[0], summand))
            else:
                reached, loose = self.reach([node])
                name = re.sub(r"Backward\d*$", "", summand.name())
                terms.append(Term(self.line_of(summand, code), name, reached, loose=loose))
        terms = [term for term in terms if not term.memory & memory]
        return terms if len(terms) > 1 and not stack else []

    def is_inside_call(self, node, below: list) -> bool:
        """Whether a sum and a summand were computed by one call of the user's: a loss of PyTorch's, or a library's."""
        here = self.lines.get(node._sequence_nr(), (None,))[0]
        lines = [self.lines.get(child._sequence_nr(), ())[:1] for child in below if child.name() not in SUMS]
        made = [constant[2] for constant in self.constants.get(node._sequence_nr(), ()) if constant]
        return here is not None and here in [*made, *(line for seen in lines for line in seen)]

    def summands(self, node, children: list) -> list[tuple]:
        """Return the summands of a sum, last first: nodes, and terms for the constants other than zero."""
        summands = []
        constants = self.constants.get(node._sequence_nr(), (None, None))
        for child, constant in zip_longest(children, constants[: len(children)]):
            if child is not None:
                summands.append((child, child))
            elif constant is not None and constant[0]:
                value, sources, made, memory = constant
                sources = self.number_sources if sources is None else sources
                place = expression_place(*made) if made else self.line_of(node)
                summands.append((Term(place, "a constant", set(), value, sources, memory), None))
        return summands[::-1]

    def constant(self, summand: object) -> tuple | None:
        """Return the value of a summand that needs no gradient (of a tensor its sum), its sources, line and memory.

        None for all else, and for a tensor without a source. The memory is that of what it was computed from: if it is
        another summand's, as in the straight-through estimator, the constant is on purpose. That a term was computed
        under no_grad() is only known of a single number.
        """
        if isinstance(summand, float | int):
            return float(summand), None, None, set()
        if type(summand) is not Tensor or summand.requires_grad or summand.is_complex() or summand.is_meta:
            return None
        if (storage := storage_of(summand)) is None:
            return None
        sources = self.sources_of([summand])
        made, storages = self.makers.get(storage, (None, set()))
        if summand.numel() > 1:
            sources &= ~of_kind(BLIND, sources)
            if not sources:
                return None
        return float(summand.detach().double().sum()), sources, made, storages | {self.serial(summand)}


def _plain_tensors(value: object) -> list[Tensor]:
    """Return the tensors in `value` but those of a subclass, as a compiler's."""
    return [tensor for tensor in tensors_in(value) if type(tensor) in (Tensor, nn.Parameter)]
