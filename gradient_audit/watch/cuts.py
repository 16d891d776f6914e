"""What cuts a result off its graph: `detach()`, `no_grad()`, a tensor made of numbers, an operation without a slope."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gradient_audit.places import Place
from gradient_audit.watch.frames import Lines, current_place, place_at, runs_in_function
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.lineage import Lineage
from gradient_audit.watch.memory import plain_tensors
from gradient_audit.watch.tensors import node_of


class Cuts:
    """Notes with each memory what cut off something that it was computed from."""

    def __init__(self, lineage: Lineage):
        self.lineage, self.guard = lineage, lineage.session.guard
        self.blocks: dict[int, Place] = {}  # under `no_grad()`, that run, by id: the line that begins each
        self.switch: Place | None = None  # the line that has switched graphs off, by `set_grad_enabled()`

    @guarded
    def enter(self, block: torch.no_grad) -> None:
        self.blocks[id(block)] = current_place()

    @guarded
    def leave(self, block: torch.no_grad, *_: object) -> None:
        self.blocks.pop(id(block), None)

    @guarded
    def note_switch(self, _: torch.set_grad_enabled, mode: bool) -> None:
        self.switch = None if mode else current_place()

    @guarded
    def note_detached(self, tensor: Tensor) -> None:
        """Note what `detach_()` has cut off, which is no operation that a mode sees."""
        memory = self.lineage.memory_of(tensor)
        memory.add_cuts({("detached-fakes", current_place()): memory.sources})

    def note(self, function: Callable, args: tuple, result: object, here: Lines) -> None:
        """Note an operation: its result is behind the cuts of its arguments, and behind its own, if it is one."""
        tensors, memory_of = plain_tensors(args), self.lineage.memory_of
        cuts = [memory.cuts for x in tensors if type(x) is Tensor and (memory := memory_of(x)).cuts]
        if mistake := self.mistake(function, tensors, result, here):
            place = self.place_of(mistake) or place_at(here)
            cuts.append({(mistake, place): self.lineage.sources_of([*tensors, result])})
        weights = {memory_of(x) for x in tensors if cuts and type(x) is nn.Parameter}  # not their views
        for memory in {*map(memory_of, plain_tensors(result))} - weights if cuts else ():
            for some in cuts:
                memory.add_cuts(some)

    def place_of(self, mistake: str) -> Place | None:
        """Return the line that switched graphs off, or began such a block, or the only one that has read a number."""
        if mistake == "no-graph":
            return next(reversed(self.blocks.values()), self.switch)
        return self.lineage.place_of_number() if mistake == "loss-rebuilt" else None

    def mistake(self, function: Callable, tensors: list[Tensor], result: object, here: Lines) -> str:
        """Return the mistake that it may be if an operation cuts its result off the graph, or ""."""
        if not any(tensor.requires_grad for tensor in tensors):
            return "loss-rebuilt" if function is torch.ops.aten.lift_fresh.default else ""  # torch.tensor()
        if not torch.is_grad_enabled():  # or its result gets a graph later
            return "" if not self.blocks and runs_in_function() else "no-graph"
        if function is torch.ops.aten.detach.default:  # autograd itself detaches the result that an operation saves
            node = node_of(tensors[0])
            made = self.lineage.lines.get(node._sequence_nr(), ()) if node else ()
            return "" if made[: len(here)] == here else "detached-fakes"
        smooth = any(tensor.is_floating_point() or tensor.is_complex() for tensor in plain_tensors(result))
        return "" if smooth else "step-function"
