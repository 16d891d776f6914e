"""Of a script that raised: which mistake it is, and the line that is its cause."""

import re
import runpy
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from torch import Tensor, nn

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import nodes_of, storage_of
from gradient_audit.lineage import FORWARD, Lineage, numbers_in
from gradient_audit.mistakes import load, match
from gradient_audit.places import PACKAGE, Place, user_frames
from gradient_audit.record import Forward, Pass, Record

IN_PLACE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)
SECOND_TIME = "backward through the graph a second time"
NO_GRAPH = "does not require grad and does not have a grad_fn"
TWICE, KEPT, DETACHED = "second-backward", "loss-kept-with-graph", "detached-fakes"
HIDDEN = "; this write raises no version, so PyTorch alone gives a wrong gradient and no error: raised by the audit"
STEPPED = "Compute the forward pass again after the step, or step after the last `backward()` that needs it"
NEW = "`x = x + y` for `x += y`, `inplace=False`, `clone()`"
ONCE = "`backward()` once, on the sum of the losses"


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
        if name == KEPT and SECOND_TIME not in trace and all(finding.kind != "kept" for finding in findings):
            return  # memory may run out without a mistake
        rest = "." if blamed else f": {mistake.title} {mistake.cure}"  # a finding's own cure fits the culprit
        yield f"This is the mistake `{name}`{rest}\nSee it live: python -m gradient_audit --mistake {name}"


def raised_errors(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that raised and whose cause is known."""
    for findings in facts.record.errors:
        yield from findings(facts)


def trace_error(event: Pass, roots: list, losses: list, message: str, record: Record, lineage: Lineage) -> Iterator:
    """Yield functions of the facts, of what can be known of an error only while the pass raises."""
    if IN_PLACE.search(message):
        yield trace_overwritten(event, roots, message, lineage).findings
    elif SECOND_TIME in message:
        yield from trace_freed(event, roots, losses, record, lineage)
    elif NO_GRAPH in message:
        yield from trace_lost(event, losses, record, lineage)


def _finding(kind: str, networks, text: str, told: dict, mistake: str, why="", cure="") -> Finding:
    """Return a finding.

    told: places, or words, by what they are; look at the last ones first. why, cure: "" for those of the mistake.
    """
    facts = {label: what if isinstance(what, str) else _lines(what) for label, what in told.items() if what}
    facts |= {"why": why or load(mistake).why, "cure": cure or load(mistake).cure}
    places = [place for what in reversed(told.values()) if not isinstance(what, str) for place in what if place]
    return Finding(kind, networks, text, (*dict.fromkeys(places),), facts["cure"], (*facts.items(),), mistake)


def _lines(places: list[Place | None]) -> str:
    return joined([*dict.fromkeys(str(place) for place in places if place)][:5] or ["a line that was not seen"])


@dataclass
class Overwritten:
    """What is known of an error "modified by an inplace operation"."""

    event: Pass
    storages: dict[object, str] = field(default_factory=dict)  # of the tensors that fit, each with a description
    readers: list[Place] = field(default_factory=list)
    writers: dict[Place, str] = field(default_factory=dict)  # each with its operation, "" for a step
    behind: set[int] = field(default_factory=set)  # the parameters to which the gradient goes through these tensors
    hidden: bool = False  # whether PyTorch alone gives no error

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, with the names that are known at the end."""
        names = {
            storage_of(tensor): (name, f"`{name}.{inner}`")
            for name, network in facts.networks.items()
            for inner, tensor in [*network.named_parameters(), *network.named_buffers()]
        }
        changed = tuple(dict.fromkeys(names[storage][0] for storage in self.storages if storage in names))
        tensors = dict.fromkeys(names.get(storage, ("", words))[1] for storage, words in self.storages.items())
        told = {
            "wanted by": [self.event.place],
            "tensor": joined([*tensors][:5] or ["a tensor of its graph"]),
            "read by": self.readers or [None],
            "written by": [*self.writers] or [None],
        }
        fused = any(group.get("fused") for optimizer in facts.optimizers.values() for group in optimizer.param_groups)
        behind, operations = facts.networks_of(self.behind), joined(sorted({*self.writers.values()} - {""}))
        mistake = "" if not self.hidden else "fused-step" if fused and not operations else "data-edit"
        why = "the gradient is computed from the tensor as it was in the forward pass" + HIDDEN * self.hidden
        if operations or not (changed or self.writers):
            cure = f"Make a new tensor, not {operations or 'the in-place operation'}, and use it: {NEW}."
        elif {*behind} - {*changed}:  # the gradient goes through the changed network, to another
            cure = f"{STEPPED}."
        else:
            cure = f"{STEPPED}; `detach()` what comes from an earlier step or from a network that this loss is not for."
        text = "a backward pass needs a tensor as it was before it was changed in place."
        yield _finding("overwritten", changed or behind, text, told, mistake, why, cure)


def saved_errors(node) -> Iterator[tuple[str, Exception]]:
    """Yield the attributes of a node that would be saved tensors, and raise, each with its error."""
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                getattr(node, name, None)
            except Exception as error:  # also what a hook of the user's on saved tensors raises
                yield name, error


def changed_saved_tensors(node, message: str) -> Iterator[Tensor]:
    """Yield the tensors that a node has saved and that give this very error "modified by an inplace operation"."""
    for name, error in saved_errors(node):
        if not (text := str(error).split(" Hint:")[0]) or text not in message:
            continue
        raw = getattr(node, f"_raw_{name.lstrip('_')}")
        for saved in raw if isinstance(raw, tuple | list) else [raw]:
            unpacked: list[Tensor] = []

            def refuse(_: object, error=error) -> None:
                raise error  # for whoever calls backward() on this graph again

            with suppress(RuntimeError):  # freed already, or saved by other hooks
                saved.register_hooks(unpacked.append, refuse)
            yield from unpacked


def trace_overwritten(event: Pass, roots: list, message: str, lineage: Lineage) -> Overwritten:
    """Find the tensors that fit the error of a pass, who read them and who wrote them.

    Raises AttributeError for nodes that keep tensors elsewhere.
    """
    now, expected = map(int, IN_PLACE.search(message).groups())
    blame = Overwritten(event)
    variables = [item for frame in user_frames() for item in list(frame.f_locals.items())]
    for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
        for tensor in changed_saved_tensors(node, message):
            storage, memory = storage_of(tensor), lineage.memory_of(tensor)
            of_node = re.sub(r"Backward\d*$", "", node.name())
            blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            blame.readers += filter(None, [lineage.line_of(node)])
            blame.behind |= lineage.reach([node])
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_of(value) is storage and value._version == now:
                    blame.storages[storage] = f"`{name}`"
            writes = [write for write in lineage.writes if write[0] is memory and expected <= write[1] < now]
            blame.hidden |= bool(writes) and all(raised for *_, raised, _ in writes)
            blame.writers |= {place: name for _, _, name, _, place in writes}
    return blame


def freed_graph(event: Pass, by: Pass, told: dict, cut: list, kept: bool, behind: set, ahead: set, facts: Facts):
    """Yield the finding about an error "backward through the graph a second time".

    by: the pass that freed the graph. cut: where a `detach()` was on the way to the loss. kept: whether the freed part
    is of an earlier iteration. behind: the parameters behind that part. ahead: all that either pass reaches.
    """
    here, moved = facts.networks_of(behind), set().union(*(p.reached for p in facts.passes))
    unmoved = [name for name, numbers in facts.numbers.items() if not numbers.keys() & moved]
    ends = joined([name for name in unmoved if facts.is_fed_by(event, name) and facts.holders_of(name)])
    mistake, call = TWICE, "autograd.grad" if by.kind == "grad" else "backward"
    why = f"`{call}()` frees the graph that it goes through"
    if by.kind == "grad":
        mistake = "penalty-frees-graph" if by.create_graph else TWICE
        cure = "`create_graph=True` if a loss is to change the result, else `retain_graph=True`, and never `False`."
    elif kept:
        mistake, why, cure = KEPT, "", ""
        told["used by"] = told.pop("used by")
    elif ends and here:
        mistake, told["cut off by"] = DETACHED, cut
        why += f", and this one ends at what {ends} computed, which has no graph here"
        cure = f"If this loss is for {ends}, run {joined(here)} again on that output, without `detach()`"
        cure += f"; if it is for {joined(here)}, {ONCE}."
    else:
        why += f": that of both passes, to {joined(here) or 'the same tensors'}"
        cure = f"{ONCE}; or compute it anew for each pass, `detach()` a constant, or `retain_graph=True` in the first."
        if here and sum(not ahead.isdisjoint(held) for held in facts.accounts_of.values()) > 1:  # several optimizers
            others = {name: {*here} - {name} for name in here}
            first = joined([n for n in here if not any(facts.leads_through(event, n, o) for o in others[n])] or here)
            cure = f"`detach()` what {first} computed, in the loss that is not for {first}, and run what follows on it"
            cure += f" once for each loss, limited by `inputs=`; if both are for {first}, {ONCE}."
    text = "a backward pass needs a graph that an earlier pass has freed."
    yield _finding("freed", here, text, told, mistake, why, cure)


def trace_freed(event: Pass, roots: list, losses: list, record: Record, lineage: Lineage) -> Iterator[partial]:
    """Yield what tells of the pass that freed a graph, if it was seen."""
    before = [p for p in record.events if isinstance(p, Pass) and p.nodes and p is not event]
    nodes = {node._sequence_nr(): node for node in nodes_of(roots)}
    for by in reversed(before):
        frees = set() if by.keeps else by.nodes
        errors = ((number, error) for number in frees & nodes.keys() for _, error in saved_errors(nodes[number]))
        if not (freed := {number for number, error in errors if SECOND_TIME in str(error)}):
            continue
        new = [nodes[number] for number in sorted(nodes.keys() - frees)]
        used = [node for node in new if any(n and n._sequence_nr() in frees for n, _ in node.next_functions)]
        node = next((nodes[n] for n in sorted(freed, reverse=True) if lineage.line(nodes[n])), nodes[max(freed)])
        # The freed part is older than an earlier pass of this line, and its own line has run again since.
        kept = any(max(freed) <= max(old.nodes) for old in before if old.callers == event.callers)
        line = lineage.line(node)
        kept &= any(lines[0] == line and number > max(by.nodes) for number, lines in lineage.lines.items())
        kept &= not all(node._sequence_nr() in frees for node in roots)  # else it is this very loss
        told = {"wanted by": [event.place], "built by": [lineage.line_of(node)]}
        told |= {"used by": [*map(lineage.line_of, used)], "freed by": [by.place]}
        cut = _cuts(losses, lineage).get(DETACHED, [])
        behind, ahead = lineage.reach([nodes[number] for number in freed]), lineage.reach(roots) | by.reached
        yield partial(freed_graph, event, by, told, cut, kept, behind, ahead)
        return


def lost_graph(event: Pass, forwards: list[Forward], cuts: dict, frozen: set[int], facts: Facts) -> Iterator[Finding]:
    """Yield the finding about an error "does not require grad and does not have a grad_fn".

    forwards: that the loss was computed by. cuts: see `_cuts`. frozen: the parameters that are, now.
    """
    forwards = [forward for forward in forwards if forward.reached & facts.owned] or forwards
    blind = [forward.place for forward in forwards[::-1] if forward.blind]
    without = [forward for forward in forwards if forward.frozen and not (forward.blind or forward.graph)]
    cuts = {mistake: at for mistake, at in cuts.items() if mistake != "loss-rebuilt"} or ({} if forwards else cuts)
    numbers = set().union(*(forward.reached for forward in without))
    if not (forwards or cuts):  # nothing was seen: what is trained and frozen now
        numbers = {n for ids in facts.numbers.values() if ids.keys() <= frozen & facts.owned for n in ids}
    told, why, cure = {"wanted by": [event.place]}, "", ""
    if numbers and (not forwards or forwards[-1] in without):  # the network next to the loss
        mistake, names = "all-frozen", joined(facts.networks_of(numbers)) or "the network"
        told |= {"cut off by": cuts.get(DETACHED, blind), "used by": [forward.place for forward in without]}
        told["frozen by"] = [facts.record.frozen.get(number) for number in sorted(numbers)]
        why = f"no parameter of {names} required a gradient, and nothing before {names} has a graph"
        cure = f"If this loss is for {names}, call `requires_grad_(True)` before; else do not cut off what it is for."
    elif forwards and forwards[-1].blind:
        mistake, told["under no_grad"] = "no-graph", blind
    elif cuts:
        mistake = [*cuts][-1]
        told["cut off by"] = cuts[mistake]
    else:
        mistake, why, cure = "no-graph", "nothing behind it needs a gradient", "Call `requires_grad_(True)` before it."
    yield _finding("dead", (), "a backward pass was called on a loss without a graph.", told, mistake, why, cure)


def trace_lost(event: Pass, losses: list, record: Record, lineage: Lineage) -> Iterator[partial]:
    """Yield what tells how a loss without a graph was computed."""
    forwards = [record.forwards[number] for number in numbers_in(FORWARD, lineage.sources_of(losses))]
    for forward in forwards:
        if (module := forward.module()) is not None:
            forward.reached = record.numbers_of(nn.Module.parameters(module))
    parts = {id(part) for forward in forwards for part in forward.parts}
    whole = [forward for forward in forwards if forward.reached and id(forward) not in parts]
    frozen = {a.number for a in record.accounts.values() if not getattr(a.parameter(), "requires_grad", True)}
    yield partial(lost_graph, event, whole, _cuts(losses, lineage), frozen)


def _cuts(losses: list[Tensor], lineage: Lineage) -> dict[str, list[Place]]:
    """Return where something behind losses was cut off its graph, by mistake; the last one is nearest."""
    cuts: dict[str, list[Place]] = {}
    for mistake, place in [cut for loss in losses for cut in lineage.memory_of(loss).cuts]:
        cuts[mistake] = [*cuts.pop(mistake, []), place]
    return cuts
