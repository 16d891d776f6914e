"""Where tensors come from: the lines that made a graph's nodes, and what is behind a number."""

import weakref
from collections import deque
from collections.abc import Callable, Set

import torch
from torch import Tensor, nn

from gradient_audit.places import Place
from gradient_audit.trace import NONE, OTHER, Cut, GraphExtended
from gradient_audit.watch.frames import Lines, current_lines, current_place, from_own, meeting, place_at, runs_inside
from gradient_audit.watch.memory import Constant, Memory, Write, is_hidden, plain_tensors
from gradient_audit.watch.parameters import Parameters
from gradient_audit.watch.session import Running, Session
from gradient_audit.watch.sources import FORWARD, GRAPH, NOTHING, NUMBER, PARAMETER, WITHOUT_GRAD, Sources, choices_of
from gradient_audit.watch.tensors import is_zero, node_of, nodes_of, numbers_in, storage_of, targets_of, tensors_in

SUM_OPERATIONS = (torch.ops.aten.add, torch.ops.aten.add_, torch.ops.aten.sub, torch.ops.aten.sub_)
JOINING = (torch.ops.aten.stack, torch.ops.aten.cat)
DIFFERENCES = (torch.ops.aten.sub, torch.ops.aten.rsub, torch.ops.aten.mse_loss, torch.ops.aten.smooth_l1_loss)
REPLACING = (torch.ops.aten.copy_.default, torch.ops.aten.zero_.default)
REPLACING += (torch.ops.aten._foreach_copy_.default, torch.ops.aten._foreach_zero_.default)
MOST_ORIGINS = 64  # of a constant, with all that it was computed by: a long computation has more
MOST_NUMBERS = 64  # in a tensor that is made of numbers, or read as such, to be a term of a loss


class Lineage:
    """What single operations tell, noted while the forward passes run."""

    def __init__(self, session: Session, parameters: Parameters):
        self.session, self.parameters, self.accounts = session, parameters, parameters.accounts
        self.writes: deque[Write] = deque(maxlen=4096)
        self.lines: dict[int, Lines] = {}  # of a node, by its sequence number
        self.outer: Lines = ()  # that called the forward pass that runs
        # Likewise, of a sum: the summands without a graph, and the memory of those that have one.
        self.sums: dict[int, tuple[list[Constant], set[Memory]]] = {}
        self.summands: dict[int, Memory] = {}  # likewise, of a summand with a graph
        # Likewise, of a sum that is one number: its lines, None of a difference, and nodes that each summand scales.
        self.totals: dict[int, tuple[Lines | None, list[set[int]]]] = {}
        self.at_zero: set[int] = set()  # likewise, of summands that are zero: such a term may be at its optimum
        self.of_itself: set[int] = set()  # likewise, of differences of values that are the same, and of the same
        self.passed: dict[int, Running] = {}  # likewise, the last pass that came through a node
        self.memories: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by storage
        self.number_sources = NOTHING
        self.numbers: dict[float | None, Place] = {}  # by number, None for several: the line that has read it

    def forget_numbers(self) -> None:
        """Forget the numbers that the script has read, as by item(), since the last pass."""
        self.number_sources = NOTHING
        self.numbers = {}

    def place_of_number(self, number: float | None = None) -> Place | None:
        """Return the line that has read a number, or the only one that has read any."""
        places = {*self.numbers.values()}
        return self.numbers.get(number, places.pop() if len(places) == 1 else None)

    def note_numbers(self, tensor: Tensor) -> None:
        if sources := self.sources_of(tensor):
            self.number_sources |= sources
            numbers = numbers_in(tensor) if tensor.numel() == 1 else {None}  # of several, others may be computed
            self.numbers |= dict.fromkeys(numbers, current_place())

    def note_rebuilt(self, tensor: Tensor, here: Lines) -> None:
        """Note of a new tensor whether its numbers, or what it is the mean of, were read from others."""
        small = storage_of(tensor) is not None and tensor.numel() <= MOST_NUMBERS and tensor.is_floating_point()
        several = None in self.numbers or (small and numbers_in(tensor) & self.numbers.keys())
        if self.number_sources and small and (several or tensor.numel() == 1):
            memory = self.memory_of(tensor)
            memory.sources |= Sources.of(NUMBER, *self.number_sources.numbers(PARAMETER))
            memory.rebuilt = place_at(here)

    def knows(self, function: Callable, args: tuple) -> bool:
        """Whether an operation may tell something: none on data alone does, as those that prepare images."""
        alone = all(
            type(x) is Tensor and not x.requires_grad and storage_of(x) not in self.memories for x in tensors_in(args)
        )
        return bool(self.number_sources) or not alone or function is torch.ops.aten.lift_fresh.default

    def note(self, function: Callable, args: tuple, result: object, here: Lines) -> tuple[set[Memory], Sources]:
        """Note an operation; return the memory that it wrote to, and the sources of what it only read."""
        indices = targets_of(function)
        written = indices if len(indices) == 1 else ()  # of several, as of a fused step, all are read
        inputs = [x for index, x in enumerate(args) if index not in written]
        summed = function.overloadpacket in SUM_OPERATIONS
        numbers = (x for x in inputs[:2] if isinstance(x, float | int) and x)
        number = next(numbers, None) if self.number_sources and summed else None
        everything = tensors_in(args)
        tensors = plain_tensors(everything)
        for tensor in tensors if self.number_sources and not number else ():
            if not tensor.requires_grad and storage_of(tensor) not in self.memories:  # from_numpy() has made it
                self.note_rebuilt(tensor, here)
        unread = {*written, *choices_of(function, args)}
        read = self.sources_of([x for index, x in enumerate(args) if index not in unread])
        targets = [args[index] for index in indices if index < len(args)]
        sources = read | self.sources_of(targets)
        if function in REPLACING and (old := storage_of(args[0])) and old.nbytes() == args[0].nbytes:
            self.memory_of(args[0]).sources, sources = NOTHING, read
            self.memory_of(args[0]).total = None
        self.derive([result, targets], sources)  # those on lists return nothing
        if function is torch.ops.aten._local_scalar_dense.default:  # item()
            self.note_numbers(args[0])
        elif function is torch.ops.aten.lift_fresh.default:  # torch.tensor()
            self.note_rebuilt(result, here)
        with_graph = [tensor for tensor in tensors if tensor.requires_grad]
        others = len(tensors) < len(everything)  # a tensor of a subclass may have a graph, and is not asked
        if torch.is_grad_enabled() and (others or with_graph):
            self._note_readers(function, with_graph, here)
            self._note_node(function, inputs[:2], targets, result, with_graph, here)
        elif sources or number:
            for tensor in plain_tensors(result):  # a sort has two
                self._note_constant(tensor, set(map(self.memory_of, tensors)), number, summed, here)
        return self._note_writes(function, targets, here), read

    def _note_constant(
        self, result: Tensor, origins: set[Memory], number: float | None, summed: bool, here: Lines
    ) -> None:
        memory = self.memory_of(result)
        if number:
            memory.rebuilt = self.place_of_number(number)
            self.derive(result, Sources.of(NUMBER, *self.number_sources.numbers(PARAMETER)))
        lines = {origin.lines for origin in origins if summed} - {()}  # of one summand that starts a sum: its own
        memory.lines = lines.pop() if len(lines) == 1 else here
        memory.origins = origins.union(*(origin.origins for origin in origins))
        if len(memory.origins) > MOST_ORIGINS:  # those on the way go
            memory.origins = {one for one in memory.origins if one.reader or one.rebuilt or not one.lines}
        memory.total = self.constant(result) if summed and result.numel() == 1 else None

    def _note_readers(self, function: Callable, with_graph: list[Tensor], here: Lines) -> None:
        if function is torch.ops.aten.detach.default:  # as `.data` calls it
            return
        for tensor in with_graph:
            memory = self.memory_of(tensor)
            memory.reader = memory.reader if node_of(tensor) and memory.reader else weakref.ref(tensor)
        below = {node._sequence_nr() for node in map(node_of, with_graph) if node}
        for call in {self.passed[number] for number in below & self.passed.keys()}:
            if call.keeper != here:
                call.keeper = here
                self.session.add(GraphExtended(place_at(here), call.number))

    def _note_node(
        self, function: Callable, inputs: list, targets: list, result: object, with_graph: list[Tensor], here: Lines
    ) -> None:
        node = torch.autograd._get_sequence_nr() - 1  # of this operation, if it has one: no other is newer
        if node not in self.lines:
            flat = isinstance(result, Tensor) and result.ndim < 2  # as the terms of a loss, or losses of samples
            self.lines[node] = current_lines() if flat else here + self.outer
        pair = plain_tensors(inputs) if function.overloadpacket in DIFFERENCES and type(result) is Tensor else []
        of = {frozenset(self.sources_of(x).numbers(PARAMETER)) for x in pair}  # as of a teacher that is the student
        same = len(with_graph) == 2 or len({self.memory_of(x) for x in pair}) == 1 or (len(of) == 1 and of != {NONE})
        if len(pair) == 2 and same and is_zero(result) and not is_zero(with_graph[0]):
            self.of_itself.add(node)
        # The sum in a loss of PyTorch's, as the one of kl_div(), has no terms of the user's.
        joined = [x for x in tensors_in(inputs) if x.numel() == 1] if function.overloadpacket in JOINING else []
        if (joined or function.overloadpacket in SUM_OPERATIONS) and not runs_inside(nn.functional.__file__):
            inputs = joined or inputs
            constants = [constant for x in inputs if (constant := self.constant(x))]
            constants += [total for x in targets if not x.requires_grad and (total := self.memory_of(x).total)]
            summands = {memory for memory in map(self.memory_of, with_graph) if not memory.total}
            self.sums.setdefault(node, (constants, summands))
            nodes = {x.grad_fn._sequence_nr(): x for x in with_graph if x.grad_fn is not None}
            self.summands |= {number: self.memory_of(x) for number, x in nodes.items()}
            self.at_zero |= {number for number, x in nodes.items() if is_zero(x)}

    def _note_writes(self, function: Callable, targets: list, here: Lines) -> set[Memory]:
        written = [tensor for tensor in plain_tensors(targets) if not tensor.is_inference()]  # those have no version
        for tensor in written:
            if (memory := self.memory_of(tensor)).reader:  # what comes before all forward passes is not to blame
                hidden = torch.autograd._get_sequence_nr() if is_hidden(memory, tensor) else 0
                name = function.overloadpacket.__name__
                self.writes.append(Write(memory, tensor._version, name, place_at(here), hidden))
        return set(map(self.memory_of, written))

    def cuts_behind(self, tensors: list[Tensor]) -> tuple[Cut, ...]:
        """Return where something behind tensors was cut off its graph."""
        return tuple(cut for tensor in tensors for cut in self.memory_of(tensor).each_cut())

    def memory_of(self, tensor: Tensor) -> Memory:
        """Return what is known of the tensor's storage; nothing, if it has none."""
        storage = storage_of(tensor)
        if storage is None:
            return Memory()
        if (memory := self.memories.get(storage)) is None:
            memory = self.memories[storage] = Memory()
        return memory

    def line(self, node, packages: Set[str]) -> Lines:
        """Return the innermost line of these packages that made a node of a graph; nothing, if that was not seen."""
        return from_own(self.lines.get(node._sequence_nr(), ()), packages)[:1]

    def place_of(self, node, caller: Lines = ()) -> Place | None:
        """Return where a node of a graph was made, if that was seen. caller: the lines that called for a pass."""
        lines = self.lines.get(node._sequence_nr(), ())
        return meeting(lines, caller) if lines else None

    def reach(self, roots: list, follow: Callable | None = None) -> frozenset[int]:
        """Return the parameters that the graph leads to, and OTHER for other leaves. follow: see `nodes_of`."""
        leaves = [node.variable for node in nodes_of(roots, follow) if hasattr(node, "variable")]
        return frozenset(self.accounts[id(x)].number if id(x) in self.accounts else OTHER for x in leaves)

    def is_at_zero(self, node) -> bool:
        """Whether a term is zero, and its gradient may be because of that; not if it is something less itself."""
        differences = [n.next_functions for n in nodes_of([node]) if n._sequence_nr() in self.of_itself]
        alike = (not (a and b) or self.reach([a]) == self.reach([b]) for (a, _), (b, _), *_ in differences)
        return node._sequence_nr() in self.at_zero and not any(alike)

    def sources_of(self, value: object) -> Sources:
        """Return what tensors were computed from, with a graph or without."""
        sources = NOTHING
        for tensor in plain_tensors(value):
            if id(tensor) in self.accounts and tensor.requires_grad:
                number = self.accounts[id(tensor)].number
                sources |= Sources.of(PARAMETER, number)
                if not torch.is_grad_enabled():
                    sources |= Sources.of(WITHOUT_GRAD, number)
            else:
                own = self.memory_of(tensor).sources
                cut = own.has(GRAPH) and not node_of(tensor)  # as of a detached alias of the storage, or a new leaf
                sources |= own.without(GRAPH) if cut else own
        return sources

    def derive(self, value: object, sources: Sources, cut: dict[tuple[str, Place], Sources] | None = None) -> None:
        """Note from what tensors were computed, and what cut that off its graph."""
        for tensor in plain_tensors(value) if sources else ():
            memory = self.memory_of(tensor)
            memory.sources |= sources
            memory.add_cuts(cut or {})

    def constant(self, summand: object) -> Constant | None:
        """Return a summand without a graph; None for others, and for a number that is 0."""
        if isinstance(summand, float | int):
            memory = Memory(rebuilt=self.place_of_number(summand))
            return Constant(float(summand), self.number_sources, memory) if summand else None
        if type(summand) is not Tensor or summand.requires_grad or summand.is_complex() or summand.is_meta:
            return None
        sources = self.sources_of(summand)
        value = float(summand.detach().double().sum()) if sources or summand.numel() == 1 else 0.0
        # A zero of none of these is one that a sum starts from.
        computed = value or ((sources.has(PARAMETER) or sources.has(FORWARD)) and is_zero(summand))
        return Constant(value, sources, self.memory_of(summand)) if computed else None
