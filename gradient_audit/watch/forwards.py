"""The forward passes that are watched in detail, and what becomes of their graphs."""

import functools
import weakref
from collections import defaultdict
from contextlib import ExitStack

import torch
from torch import nn

from gradient_audit.trace import Forward, GraphUsed, NanFound, ScalarComputed
from gradient_audit.watch.frames import Lines, callers_at, current_lines, current_place, place_at, runs_inside
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.lineage import Lineage
from gradient_audit.watch.sources import FORWARD, GRAPH, PARAMETER, Sources
from gradient_audit.watch.tensors import has_nan, node_of, tensors_in


class Forwards:
    """Adds an event for each forward pass of a network, and follows the graphs of what they return."""

    def __init__(self, lineage: Lineage):
        self.lineage, self.parameters, self.session = lineage, lineage.parameters, lineage.session
        self.guard, self.activity, self.history = self.session.guard, self.session.activity, self.session.history
        self.modules: dict[int, weakref.ref] = {}  # that ran, by number
        self.running: list[list[int]] = []  # for each forward pass that runs, those that ended inside of it
        self.outputs: dict[int, list[Forward]] = defaultdict(list)  # by a node's sequence number: whose output it is
        self.graphs: dict[int, list[weakref.ref]] = {}  # by what built them: each dies with a node of it
        self.found_nan = False
        self.hooks = ExitStack()  # removes those on nodes

    @guarded
    def begin_forward(self, _module: nn.Module, _args: tuple) -> None:
        if self.activity.is_watched():
            self.parameters.open_all()
            if not self.running:
                self.lineage.outer = current_lines()
            self.running.append([])

    @guarded
    def end_forward(self, module: nn.Module, _args: tuple, output: object) -> None:
        """Note a forward pass of a network, or one that is not part of another."""
        if not self.running or not self.activity.is_watched():
            return
        inside = self.running.pop()
        tried = type(module).__module__.startswith("torch.nn.utils.")  # a parametrization is, when it is made
        is_network = len(self.running) < 3 and any(True for _ in nn.Module.parameters(module))
        if not tried and (is_network or not self.running):
            inside = [*inside, self._add(module, inside, output)]
        if self.running:
            self.running[-1] += inside
        else:
            self.lineage.outer = ()
            self.note_scalar(output, self.lineage.sources_of([output]))

    def _add(self, module: nn.Module, inside: list[int], output: object) -> int:
        number, without_grad = next(self.session.built), not torch.is_grad_enabled()
        seen = Forward(
            current_place(),
            number,
            self.session.number_of(module),
            self.session.shared(self.parameters.numbers_of(nn.Module.parameters(module))),
            frozenset(inside),
            callers_at(current_lines()),
            any(map(node_of, tensors_in(output))),
            frozenset(self.lineage.sources_of(output).numbers(PARAMETER)),
            without_grad,
            is_frozen=not any(parameter.requires_grad for parameter in nn.Module.parameters(module)),
            checkpointed=without_grad and runs_inside(torch.utils.checkpoint.__file__),
        )
        self.modules[seen.module] = weakref.ref(module)
        self.session.add(seen)
        self.follow_graph(number, output, seen)  # the event comes first: another thread may have nodes of that number
        self.lineage.derive(output, Sources.of(FORWARD, number) | Sources.of(GRAPH, number))
        return number

    def follow_graph(self, built: int, output: object, seen: Forward | None = None) -> bool:
        """Note when a backward pass comes through the graph of the output, and how long it exists; return if any."""
        refs = self.graphs.setdefault(built, [])
        for node in {*map(node_of, tensors_in(output))} - {None}:
            hook = functools.partial(self.note_use, built, seen)
            self.hooks.callback(node.register_prehook(hook).remove)
            refs.append(weakref.ref(hook))
            if seen:
                self.outputs[node._sequence_nr()].append(seen)  # of a module, and of the one around it
        return bool(refs)

    @guarded
    def note_use(self, built: int, seen: Forward | None, gradients: tuple) -> None:
        """Note that a pass has come through a graph, and in which direction it moves the output of a module."""
        if self.activity.measuring:
            return
        call, direction = self.activity.call, None
        if call and call.kind == "backward" and seen:
            given = [gradient.detach() for gradient in gradients if gradient is not None and not gradient.is_meta]
            given = [torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in given]
            size = sum(float(gradient.abs().sum()) for gradient in given)
            direction = sum(float(gradient.sum()) for gradient in given) / (size or 1)
        self.session.add(GraphUsed(built, call and call.number, direction))

    def outputs_in(self, nodes: list) -> tuple[tuple[int, int, frozenset[int]], ...]:
        """Return the forward passes whose outputs are in a graph, with their modules and what each leads to."""
        found = []
        for node in nodes:
            if seen := self.outputs.get(node._sequence_nr()):
                reached = self.lineage.reach([node])
                found += [(one.number, one.module, reached) for one in seen]
        return tuple(found)

    def watch_for_nan(self, nodes: list) -> None:
        """Watch for the line whose gradient is NaN first."""
        for node in nodes if not self.found_nan else ():
            if lines := self.lineage.lines.get(node._sequence_nr()):
                self.hooks.callback(node.register_hook(functools.partial(self.note_nan, lines)).remove)

    @guarded
    def note_nan(self, lines: Lines, results: object, given: object) -> None:
        """Note the line whose result is NaN where nothing that it was given is."""
        if self.found_nan or self.activity.measuring or not tensors_in(given):
            return
        if has_nan(results) and not has_nan(given):
            self.found_nan = True
            self.session.add(NanFound(place_at(lines)))

    def note_scalar(self, result: object, sources: Sources) -> None:
        """Note of the forward passes among the sources that a number with a graph was computed from their output."""
        if sources.has(GRAPH) and torch.is_grad_enabled() and any(tensor.ndim == 0 for tensor in tensors_in(result)):
            for number in sources.numbers(GRAPH):
                if not self.history.forwards[number].has_scalar:
                    self.session.add(ScalarComputed(number))

    def living_modules(self) -> dict[int, nn.Module]:
        """Return the modules that ran and still exist, by number."""
        return {number: module for number, ref in self.modules.items() if (module := ref()) is not None}

    def living_graphs(self) -> bool:
        """Return whether the first graph that was followed still exists."""
        followed = [number for number, refs in self.graphs.items() if refs]
        first = sorted(followed, key=lambda number: number in self.history.calls)[:1]  # a forward pass, if any
        return any(ref() for number in first for ref in self.graphs[number])

    def gone_graphs(self) -> frozenset[int]:
        """Return what built the graphs that no longer exist."""
        return frozenset(built for built, refs in self.graphs.items() if refs and not any(ref() for ref in refs))
