"""Of a script that raised: which mistake it is, and the line that is its cause.

`trace_error` looks at the graph while the pass raises; `raised_errors` tells, at the end, what is known of it.
"""

import re
import runpy
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor, nn

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import changed_saved_tensors, ids_of, nodes_between, nodes_of, storage_of
from gradient_audit.lineage import Lineage
from gradient_audit.mistakes import load, match
from gradient_audit.places import PACKAGE, Place, current_callers, expression_place, user_frames
from gradient_audit.record import Forward, Pass, Record

IN_PLACE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)
SECOND_TIME = "backward through the graph a second time"
NO_GRAPH = "does not require grad and does not have a grad_fn"

HIDDEN = "; this optimizer raises no version, so PyTorch alone gives a wrong gradient and no error: raised by the audit"
ONCE = "`backward()` once, on the sum of both losses"
DETACH = "`detach()`"
CUTS = {"`no_grad()`": "no-graph", DETACH: "detached-fakes", "an operation without a derivative": "step-function"}
HEADLINES = {
    "overwritten": "a backward pass needs a tensor as it was before it was changed in place.",
    "freed": "a backward pass needs a graph that an earlier pass has freed.",
    "dead": "a backward pass was called on a loss without a graph.",
}


# What is said of the script.


def traceback_of_script(raised: BaseException) -> str:
    """Return the traceback without the frames of this package, and of those that called the script."""
    hidden = "|".join(map(re.escape, (PACKAGE, "<frozen runpy>", runpy.__file__)))
    trace = "".join(traceback.format_exception(raised))
    return re.sub(rf'^  File "(?:{hidden}).*\n(?:    .*\n)*', "", trace, flags=re.MULTILINE)


def explain(trace: str, findings: list[Finding], verdict: str) -> Iterator[str]:
    """Yield what is known of the error that ended a script: the verdict, if it is about that, and the mistake."""
    blamed = next((finding for finding in findings if finding.facts), None)
    if blamed:
        yield verdict
    for mistake in match(trace)[:1]:
        name = (blamed and blamed.mistake) or mistake.name
        rest = "." if blamed else f": {mistake.title} {mistake.cure}"  # a finding's own cure fits the culprit
        yield f"This is the mistake `{name}`{rest}\nSee it live: python -m gradient_audit --mistake {name}"


def raised_errors(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that raised and whose cause is known."""
    for error in facts.record.errors:
        yield from error.findings(facts)


def trace_error(
    event: Pass, roots: list, losses: list[Tensor], message: str, record: Record, lineage: Lineage
) -> Iterator:
    """Yield what can be known of an error only while the pass raises."""
    if IN_PLACE.search(message):
        yield trace_overwritten(event, roots, message, lineage)
    elif SECOND_TIME in message:
        yield from trace_freed(event, roots, losses, record, lineage)
    elif NO_GRAPH in message:
        yield trace_lost(event, losses, record, lineage)


def _finding(kind: str, networks: tuple, told: dict, text: str, places: list, mistake: str, **more) -> Finding:
    facts, places = tuple(told.items()), tuple(dict.fromkeys(places))
    return Finding(kind, networks, text, places, told["cure"], facts, HEADLINES[kind], mistake, **more)


def _seen(places: list[Place | None]) -> list[Place]:
    return [place for place in places if place]


def _lines(places: list[Place], other: str = "a line that was not seen") -> str:
    return joined([*dict.fromkeys(map(str, places))][:3] or [other])


# A tensor was changed in place.


@dataclass
class Overwritten:
    """What is known of an error "modified by an inplace operation"."""

    event: Pass
    storages: dict[object, str] = field(default_factory=dict)  # of the tensors that fit, each with a description
    accounts: set[int] = field(default_factory=set)  # of the parameters among them
    readers: list[Place] = field(default_factory=list)
    writers: list[Place] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)  # in place; none if optimizers alone have written
    behind: set[int] = field(default_factory=set)  # the parameters to which the gradient goes through these tensors
    ahead: set[int] = field(default_factory=set)  # all that the pass reaches
    hidden: bool = False  # whether PyTorch alone gives no error

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, with the names that are known at the end."""
        tensors = {
            storage_of(tensor): f"`{name}.{inner}`"
            for name, network in facts.networks.items()
            for inner, tensor in [*network.named_parameters(), *network.named_buffers()]
        }
        names = [tensors.get(storage, description) for storage, description in self.storages.items()]
        told = {
            "wanted by": str(self.event.place),
            "tensor": joined([*dict.fromkeys(names or ["a tensor of its graph"])][:5]),
            "read by": _lines(self.readers, "the forward pass"),
            "written by": joined([*dict.fromkeys(map(str, self.writers))] or ["a line that was not seen"]),
            "why": "the gradient is computed from the tensor as it was in the forward pass" + HIDDEN * self.hidden,
            "cure": self.cure(facts),
        }
        text = "{wanted by} needs {tensor} as {read by} found it; {written by} has changed it since.".format(**told)
        places = [*self.writers, *self.readers, self.event.place]
        accused = facts.networks_of(self.accounts or self.ahead)
        holders = [facts.optimizers[number] for number, held in facts.accounts_of.items() if self.accounts & {*held}]
        fused = any(group.get("fused") for holder in holders for group in holder.param_groups)
        mistake = ("fused-step" if fused else "data-edit") if self.hidden else ""
        yield _finding("overwritten", accused, told, text, places, mistake, silent=self.hidden)

    def cure(self, facts: Facts) -> str:
        """Return the cure that fits the culprit."""
        if self.operations or not self.accounts:
            names = joined(sorted(self.operations)) or "the in-place operation"
            return f"Write to a new tensor in place of {names}: `x = x + y` for `x += y`, `inplace=False`, `clone()`."
        cure = "Compute the forward pass again after the step, or step after the last `backward()` that needs it"
        if {*facts.networks_of(self.behind)} - {*facts.networks_of(self.accounts)}:
            return f"{cure}."  # the gradient goes through the changed network, to another
        return f"{cure}; `detach()` what comes from an earlier step or from a network that this loss is not for."


def trace_overwritten(event: Pass, roots: list, message: str, lineage: Lineage) -> Overwritten:
    """Find the tensors that fit the error of a pass, who read them and who wrote them.

    Raises AttributeError for nodes that keep tensors elsewhere.
    """
    now, expected = map(int, IN_PLACE.search(message).groups())
    blame = Overwritten(event)
    for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
        for tensor in changed_saved_tensors(node, message):
            storage, memory = storage_of(tensor), lineage.memory_of(tensor)
            of_node = re.sub(r"Backward\d*$", "", node.name())
            blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            blame.readers += filter(None, [lineage.line_of(node)])
            blame.behind |= lineage.reach([node])[0]
            for account in list(lineage.accounts.values()):
                if (parameter := account.parameter()) is not None and storage_of(parameter) is storage:
                    blame.accounts.add(account.number)
                    blame.hidden |= account.raised
            variables = [item for frame in user_frames() for item in list(frame.f_locals.items())]
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_of(value) is storage and value._version == now:
                    blame.storages[storage] = f"`{name}`"
            writes = [w for w in lineage.writes if w.memory is memory and expected <= w.version < now]
            blame.writers += [write.place for write in writes]
            blame.operations |= {write.name for write in writes} - {""}
    blame.ahead = lineage.reach(roots)[0]
    return blame


# A graph was freed.


class Walk(NamedTuple):
    """What a call of autograd goes through: its callers, the newest node of the graph, the nodes that it frees."""

    event: Pass
    callers: tuple
    newest: int
    frees: frozenset[int]


def walk_of(event: Pass, roots: list, ends: list[Tensor], retain_graph: bool | None, create_graph: bool) -> Walk:
    """Return what a call of autograd is about to go through."""
    keeps = create_graph if retain_graph is None else retain_graph
    nodes = [] if keeps else nodes_between(roots, ends) if ends else nodes_of(roots)
    frees = frozenset(node._sequence_nr() for node in nodes if not hasattr(node, "variable"))
    return Walk(event, current_callers(), max((node._sequence_nr() for node in roots), default=0), frees)


@dataclass
class Freed:
    """What is known of an error "backward through the graph a second time"."""

    event: Pass
    by: Pass
    built: list[Place]  # where the newest node of the freed part was made
    joined: list[Place]  # where a tensor of the freed part was used for the loss that raised
    cut: list[Place]  # where a `detach()` was on the way to that loss
    again: bool  # whether all of that loss has gone backward before
    kept: bool  # whether the freed part is of an earlier iteration
    behind: set[int]  # the parameters behind the freed part
    ahead: set[int]  # all that either pass reaches

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, with the mistake that fits."""
        mistake, why, cure = self.explanation(facts)
        told = {"wanted by": str(self.event.place), "built by": _lines(self.built), "freed by": str(self.by.place)}
        extra = {"loss-kept-with-graph": ("used by", self.joined), "detached-fakes": ("cut off by", self.cut)}
        label, lines = extra.get(mistake, ("", []))
        told |= {label: _lines(lines)} if lines else {}
        told |= {"why": why or load(mistake).why, "cure": cure or load(mistake).cure}
        text = "{wanted by} needs the graph that {built by} built; {freed by} has freed it.".format(**told)
        places = [*lines, self.by.place, *self.built, self.event.place]
        yield _finding("freed", facts.networks_of(self.behind), told, text, places, mistake)

    def explanation(self, facts: Facts) -> tuple[str, str, str]:
        """Return the mistake, and why the graph is gone and the cure, if these are not the mistake's own."""
        if self.by.kind == "grad" and self.by.create_graph:
            return "penalty-frees-graph", "", ""
        if self.by.kind == "grad":
            cure = "`create_graph=True` in that call if its result goes into a loss; else `retain_graph=True`."
            return "second-backward", "`autograd.grad()` frees the graph that it goes through", cure
        if self.kept and not self.again:
            return "loss-kept-with-graph", "", ""
        why = "`backward()` frees the graph that it goes through"
        here, moved = facts.networks_of(self.behind), set().union(*(p.reached for p in facts.record.passes))
        ends = [
            name
            for name, numbers in facts.numbers.items()
            if facts.is_fed_by(self.event, name) and facts.holders_of(name) and not numbers.keys() & moved
        ]
        if ends and here:
            why += f", and this one ends at what {joined(ends)} computed, which has no graph here"
            cure = f"If this loss is for {joined(ends)}, run {joined(here)} again on that output, without `detach()`"
            return "detached-fakes", why, f"{cure}; if it is for {joined(here)}, {ONCE}."
        if self.again:
            cure = "Compute the loss anew before each `backward()`, or call that once."
            return "second-backward", f"{why}, and all of this loss has gone backward before", cure
        why += f": that of both losses, to {joined(here) or 'the same tensors'}"
        holders = [number for number, held in facts.accounts_of.items() if self.ahead & {*held}]
        if len(holders) < 2 or not here:
            return "second-backward", why, f"{ONCE}; or `retain_graph=True` in the first pass."
        judges = [a for a in here for b in here if a != b and facts.leads_through(self.event, a, b)]
        first = joined([name for name in here if name not in judges] or here)
        cure = f"`detach()` what {first} computed, in the loss that is not for {first}"
        cure += f", and run {joined([*dict.fromkeys(judges)])} once for each loss" if judges else ""
        return "second-backward", why, f"{cure}; if both are for {first}, {ONCE}."


def trace_freed(event: Pass, roots: list, losses: list[Tensor], record: Record, lineage: Lineage) -> Iterator[Freed]:
    """Yield what is known of the pass that freed a graph, if it was seen."""
    *before, this = record.walks
    nodes = {node._sequence_nr(): node for node in nodes_of(roots)}
    for walk in reversed(before):
        freed = [number for number in walk.frees & nodes.keys() if _is_freed(nodes[number])]
        if freed:
            below = {n: {child._sequence_nr() for child, _ in nodes[n].next_functions if child} for n in nodes}
            joints = [number for number in nodes if number not in walk.frees and below[number] & walk.frees]
            built, *used = [lineage.line_of(nodes[number]) for number in (max(freed), *sorted(joints))]
            cut = [place for how, place in _cuts(losses, lineage) if how == DETACH]
            again = all(node._sequence_nr() in walk.frees for node in roots)
            kept = any(old.callers == this.callers and max(freed) <= old.newest for old in before)
            behind = lineage.reach([nodes[number] for number in freed])[0]
            ahead = lineage.reach(roots)[0] | walk.event.reached
            yield Freed(event, walk.event, _seen([built]), _seen(used), cut, again, kept, behind, ahead)
            return


def _is_freed(node) -> bool:
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                getattr(node, name, None)
            except Exception as error:  # also what a hook of the user's on saved tensors raises
                if SECOND_TIME in str(error):
                    return True
    return False


# A loss has no graph.


@dataclass
class Lost:
    """What is known of an error "does not require grad and does not have a grad_fn"."""

    event: Pass
    forwards: list[Forward]  # that the loss was computed by, without their parts
    gradients: list[Place]  # of autograd.grad, without a graph, likewise
    cuts: list[tuple[str, Place]]  # what cut something that it was computed from off its graph, and where

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, if a cause was seen."""
        forwards = [forward for forward in self.forwards if ids_of(forward.module()) & facts.held] or self.forwards
        last = forwards[-1] if forwards else None  # the network next to the loss
        cuts = [cut for cut in self.cuts if cut[0] in CUTS]
        if last and last.frozen and not (last.blind or last.graph):
            mistake, places, told = self.frozen(facts, forwards)
        elif last and last.blind:
            mistake, places = "no-graph", [forward.place for forward in forwards if forward.blind]
            told = {"run blind by": _lines(places)}
        elif self.gradients:
            mistake, places = "penalty-without-graph", self.gradients
            told = {"taken by": _lines(places)}
        elif cuts:
            mistake, places = CUTS[cuts[-1][0]], [place for how, place in cuts if how == cuts[-1][0]]
            told = {"cut off by": f"{cuts[-1][0]} at {_lines(places)}"}
        elif self.cuts and not forwards:
            mistake, places = "loss-rebuilt", [place for _, place in self.cuts]
            told = {"made anew by": _lines(places)}
        else:
            return
        told = {"wanted by": str(self.event.place)} | told
        told |= {"why": told.get("why") or load(mistake).why, "cure": told.get("cure") or load(mistake).cure}
        text = f"{self.event.place} has no graph to go through. {told['why']}"
        yield _finding("dead", (), told, text, [*places, self.event.place], mistake)

    def frozen(self, facts: Facts, forwards: list[Forward]) -> tuple[str, list[Place], dict[str, str]]:
        """Return what is told of networks that were frozen when they ran."""
        frozen = [forward for forward in forwards if forward.frozen and not (forward.blind or forward.graph)]
        names, lines = _names(facts, frozen), []
        for forward in frozen:
            numbers = facts.record.numbers_of(nn.Module.parameters(forward.module()))
            lines += _seen([facts.record.frozen.get(number) for number in sorted(numbers)])
        places = [forward.place for forward in frozen]
        told = {"frozen by": _lines(lines), "run frozen by": _lines(places)}
        why = f"no parameter of {names} required a gradient"
        cure = f"If this loss is for {names}, call `requires_grad_(True)` before that forward pass"
        if others := _names(facts, [forward for forward in forwards if not forward.frozen]):
            cuts = [place for how, place in self.cuts if how == DETACH]
            told["cut off by"] = _lines(cuts or [forward.place for forward in forwards if forward.blind])
            why += f", and what {others} computed had no graph"
            cure += f"; if it is for {others}, take away what cuts it off"
        return "all-frozen", [*lines, *places], told | {"why": f"{why}.", "cure": f"{cure}."}


def _names(facts: Facts, forwards: list[Forward]) -> str:
    modules = [forward.module() for forward in forwards]
    known = [facts.networks_of(facts.record.numbers_of(nn.Module.parameters(module))) for module in modules]
    pairs = zip(known, modules, strict=True)
    return joined([*dict.fromkeys(name for names, module in pairs for name in names or [type(module).__name__])])


def trace_lost(event: Pass, losses: list[Tensor], record: Record, lineage: Lineage) -> Lost:
    """Return what is known of how a loss without a graph was computed."""
    past = [thing for loss in losses for thing in lineage.memory_of(loss).past.values()]
    forwards = [forward for forward in record.forwards if any(forward is thing for thing in past)]
    forwards = [forward for forward in forwards if (module := forward.module()) is not None and ids_of(module)]
    parts = {id(part) for forward in forwards for part in forward.parts}
    gradients = [thing.place for thing in past if isinstance(thing, Pass) and not thing.create_graph]
    return Lost(event, [f for f in forwards if id(f) not in parts], gradients, _cuts(losses, lineage))


def _cuts(losses: list[Tensor], lineage: Lineage) -> list[tuple[str, Place]]:
    past = (thing for loss in losses for thing in lineage.memory_of(loss).past.values())
    return [(thing[0], expression_place(*thing[1])) for thing in past if isinstance(thing, tuple)]
