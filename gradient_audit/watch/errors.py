"""Errors of autograd: what can be known of one only while the pass raises."""

import functools
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress

from torch import Tensor

from gradient_audit.places import Place
from gradient_audit.trace import Freed, GraphMissing, Overwritten
from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.frames import written_frames
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.memory import Memory, Write
from gradient_audit.watch.saved import IN_PLACE, SECOND_TIME, changed_saved_tensors, saved_errors, saved_values
from gradient_audit.watch.session import Running
from gradient_audit.watch.sources import FORWARD
from gradient_audit.watch.tensors import nodes_of, storage_of, tensors_in

Changed = tuple[object, Tensor, list[Write]]  # a node, what it has saved, and the writes to that since
NO_GRAPH = "does not require grad and does not have a grad_fn"


class Errors:
    """Adds an event for each error whose cause can be seen."""

    def __init__(self, forwards: Forwards):
        self.forwards, self.lineage, self.parameters = forwards, forwards.lineage, forwards.parameters
        self.session, self.guard = forwards.session, forwards.guard
        self.hooks = ExitStack()  # removes those on the nodes of the pass that runs
        self.used: list[Changed] = []  # in it, though changed

    def note(self, call: Running, losses: list[Tensor], error: BaseException) -> None:
        """Note why a call raises, if that can be seen."""
        message = str(error)
        roots = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
        with suppress(AttributeError):  # a node of a kind that keeps its tensors elsewhere
            if IN_PLACE.search(message):
                self.session.add(self._overwritten(call, self._changed(roots, message)))
            elif SECOND_TIME in message:
                for event in self._freed(call, roots, losses):
                    self.session.add(event)
            elif NO_GRAPH in message:
                self.session.add(self._graph_missing(call, losses))

    def _changed(self, roots: list, message: str) -> Iterator[Changed]:
        """Yield the tensors that fit the error, with who has saved them and who wrote to them."""
        now, expected = map(int, IN_PLACE.search(message).groups())
        for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
            for tensor in changed_saved_tensors(node, message):
                writes = [w for w in self._writes_to(tensor) if expected <= w.version < now]
                yield node, tensor, writes

    @guarded
    def watch_hidden_writes(self, nodes: list) -> None:
        """Watch the nodes that have saved a tensor to which the script has written without raising its version."""
        newest = max((write.hidden for write in self.lineage.writes), default=0)
        for node in (node for node in nodes if node._sequence_nr() < newest):
            for tensor in tensors_in([value for _, value in saved_values(node)]):
                writes = [w for w in self._writes_to(tensor) if node._sequence_nr() < w.hidden]
                if writes:
                    hook = functools.partial(self.note_gradient, (node, tensor, writes))
                    self.hooks.callback(node.register_prehook(hook).remove)

    @guarded
    def note_gradient(self, changed: Changed, gradients: tuple) -> None:
        """Note that a gradient other than zero comes to a node, which computes with what it has saved."""
        if any(gradient is not None and gradient.any() for gradient in gradients):
            self.used.append(changed)

    @guarded
    def note_hidden_writes(self, call: Running) -> None:
        """Note what a pass, which has ended, has computed with."""
        self.hooks.close()
        if self.used and not call.raised:
            self.session.add(self._overwritten(call, self.used, hidden=True))
        self.used = []

    def _writes_to(self, tensor: Tensor) -> list[Write]:
        memory = self.lineage.memory_of(tensor)
        return [write for write in self.lineage.writes if write.memory is memory]

    def _overwritten(self, call: Running, found: Iterable[Changed], *, hidden: bool = False) -> Overwritten:
        """Describe tensors that were changed in place."""
        variables = [item for frame in written_frames() for item in list(frame.f_locals.items())]
        tensors: dict[Memory, str] = {}
        readers: list[Place] = []
        writes: list[Write] = []
        behind: set[int] = set()
        for node, tensor, of_it in found:
            memory, storage = self.lineage.memory_of(tensor), storage_of(tensor)
            of_node = re.sub(r"Backward\d*$", "", node.name())
            tensors.setdefault(memory, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            readers += filter(None, [self.lineage.place_of(node, call.lines)])
            behind |= self.lineage.reach([node])
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_of(value) is storage and value._version == tensor._version:
                    tensors[memory] = f"`{name}`"
            writes += of_it
        numbered = tuple((self.session.number_of(memory), text) for memory, text in tensors.items())
        writers = {write.place: write.name for write in writes}
        return Overwritten(call.place, numbered, tuple(readers), (*writers.items(),), frozenset(behind), hidden)

    def _freed(self, call: Running, roots: list, losses: list[Tensor]) -> Iterator[Freed]:
        """Yield what tells of the pass that freed a graph, if it was seen."""
        before = [one for one in self.session.calls.values() if one.nodes and one is not call]
        nodes = {node._sequence_nr(): node for node in nodes_of(roots)}
        for by in reversed(before):
            frees = set() if by.keeps_graph else by.nodes
            errors = ((number, error) for number in frees & nodes.keys() for _, error in saved_errors(nodes[number]))
            if freed := {number for number, error in errors if SECOND_TIME in str(error)}:
                new = [nodes[number] for number in sorted(nodes.keys() - frees)]
                used = [node for node in new if any(n and n._sequence_nr() in frees for n, _ in node.next_functions)]
                seen = (nodes[number] for number in sorted(freed, reverse=True) if number in self.lineage.lines)
                node = next(seen, nodes[max(freed)])
                cuts = self.lineage.cuts_behind(losses)
                yield Freed(
                    call.place,
                    call.number,
                    by.number,
                    built=(self.lineage.place_of(node, call.lines),),
                    used=tuple(self.lineage.place_of(node, call.lines) for node in used),
                    cuts=tuple(place for mistake, place, _ in cuts if mistake == "detached-fakes"),
                    earlier=self._is_earlier(call, by, node._sequence_nr(), max(freed), before)
                    and not all(root._sequence_nr() in frees for root in roots),  # else it is this very loss
                    behind=self.lineage.reach([nodes[number] for number in freed]),
                    ahead=self.lineage.reach(roots) | by.reached,
                )
                return

    def _is_earlier(self, call: Running, by: Running, node: int, newest: int, before: list[Running]) -> bool:
        """Whether the freed part is older than an earlier pass of this line, and its own line has run again since."""
        line = self.lineage.lines.get(node, ())[:1]
        again = any(lines[:1] == line and number > max(by.nodes) for number, lines in self.lineage.lines.items())
        return again and any(newest <= max(old.nodes) for old in before if old.lines == call.lines)

    def _graph_missing(self, call: Running, losses: list[Tensor]) -> GraphMissing:
        """Tell how a loss without a graph was computed."""
        rows = map(self.session.history.forwards.get, self.lineage.sources_of(losses).numbers(FORWARD))
        forwards = [row.event for row in rows if row.event.parameters]
        inside = set().union(*(one.inside for one in forwards))
        outer = tuple(one.number for one in forwards if one.number not in inside)
        living = self.parameters.living()
        frozen = frozenset(account.number for account, parameter in living if not parameter.requires_grad)
        return GraphMissing(call.place, outer, self.lineage.cuts_behind(losses), frozen)
