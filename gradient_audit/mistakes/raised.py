"""Of a script that raised: which mistake it is, and the line that is its cause."""

import re
import runpy
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor, nn

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import changed_saved_tensors, nodes_of, storage_of
from gradient_audit.lineage import FORWARD, Lineage, numbers_in
from gradient_audit.mistakes import load, match
from gradient_audit.places import PACKAGE, Place, user_frames
from gradient_audit.record import Forward, Pass, Record

IN_PLACE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)
SECOND_TIME = "backward through the graph a second time"
NO_GRAPH = "does not require grad and does not have a grad_fn"
TWICE, KEPT, DETACHED = "second-backward", "loss-kept-with-graph", "detached-fakes"
HIDDEN = "; this write raises no version, so PyTorch alone gives a wrong gradient and no error: raised by the audit"
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
        rest = "." if blamed else f": {mistake.title} {mistake.cure}"  # a finding's own cure fits the culprit
        yield f"This is the mistake `{name}`{rest}\nSee it live: python -m gradient_audit --mistake {name}"


def raised_errors(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that raised and whose cause is known."""
    for error in facts.record.errors:
        yield from error.findings(facts)


def trace_error(event: Pass, roots: list, losses: list, message: str, record: Record, lineage: Lineage) -> Iterator:
    """Yield what can be known of an error only while the pass raises."""
    if IN_PLACE.search(message):
        yield trace_overwritten(event, roots, message, lineage)
    elif SECOND_TIME in message:
        yield from trace_freed(event, roots, losses, record, lineage)
    elif NO_GRAPH in message:
        yield trace_lost(event, losses, record, lineage)


def _finding(kind, networks, told: dict, text, places: list, mistake: str, why="", cure="", silent=False) -> Finding:
    """Return a finding with the facts that are told, why it is so and the cure: those of the mistake, if not given."""
    told |= {"why": why or load(mistake).why, "cure": cure or load(mistake).cure}
    places = tuple(dict.fromkeys(place for place in places if place))
    return Finding(kind, networks, text, places, told["cure"], tuple(told.items()), mistake, silent)


def _lines(places: list[Place | None], other: str = "a line that was not seen") -> str:
    return joined([*dict.fromkeys(str(place) for place in places if place)][:3] or [other])


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
        }
        why = "the gradient is computed from the tensor as it was in the forward pass" + HIDDEN * self.hidden
        text = "a backward pass needs a tensor as it was before it was changed in place."
        places = [*self.writers, *self.readers, self.event.place]
        accused = facts.networks_of(self.accounts or self.ahead)
        holders = [facts.optimizers[number] for number, held in facts.accounts_of.items() if self.accounts & {*held}]
        fused = any(group.get("fused") for holder in holders for group in holder.param_groups)
        mistake = ("fused-step" if fused else "data-edit") if self.hidden else ""
        yield _finding("overwritten", accused, told, text, places, mistake, why, self.cure(facts), self.hidden)

    def cure(self, facts: Facts) -> str:
        """Return the cure that fits the culprit."""
        if self.operations or not self.accounts:
            names = joined(sorted(self.operations)) or "the in-place operation"
            return f"Make a new tensor, not {names}, and use it: `x = x + y` for `x += y`, `inplace=False`, `clone()`."
        cure = "Compute the forward pass again after the step, or step after the last `backward()` that needs it"
        if {*facts.networks_of(self.behind)} - {*facts.networks_of(self.accounts)}:
            return f"{cure}."  # the gradient goes through the changed network, to another
        return f"{cure}; `detach()` what comes from an earlier step or from a network that this loss is not for."


def trace_overwritten(event: Pass, roots: list, message: str, lineage: Lineage) -> Overwritten:
    """Find the tensors that fit the error of a pass, who read them and who wrote them.

    Raises AttributeError for nodes that keep tensors elsewhere.
    """
    now, expected = map(int, IN_PLACE.search(message).groups())
    blame = Overwritten(event, ahead=lineage.reach(roots))
    for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
        for tensor in changed_saved_tensors(node, message):
            storage, memory = storage_of(tensor), lineage.memory_of(tensor)
            blame.hidden |= memory.raised
            of_node = re.sub(r"Backward\d*$", "", node.name())
            blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            blame.readers += filter(None, [lineage.line_of(node)])
            blame.behind |= lineage.reach([node])
            for account in list(lineage.accounts.values()):
                if (parameter := account.parameter()) is not None and storage_of(parameter) is storage:
                    blame.accounts.add(account.number)
            variables = [item for frame in user_frames() for item in list(frame.f_locals.items())]
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_of(value) is storage and value._version == now:
                    blame.storages[storage] = f"`{name}`"
            writes = [write for write in lineage.writes if write[0] is memory and expected <= write[1] < now]
            blame.writers += [place for *_, place in writes]
            blame.operations |= {name for *_, name, _ in writes} - {""}
    return blame


@dataclass
class Freed:
    """What is known of an error "backward through the graph a second time"."""

    event: Pass
    by: Pass
    built: Place | None  # where the newest node of the freed part was made
    used: list[Place | None]  # where a tensor of the freed part was used for the loss that raised
    cut: list[Place]  # where a `detach()` was on the way to that loss
    kept: bool  # whether the freed part is of an earlier iteration
    behind: set[int]  # the parameters behind the freed part
    ahead: set[int]  # all that either pass reaches

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, with the mistake that fits."""
        mistake, why, cure = self.explanation(facts)
        told = {"wanted by": str(self.event.place), "built by": _lines([self.built]), "freed by": str(self.by.place)}
        lines = self.used if mistake == KEPT else self.cut if mistake == DETACHED else []
        told |= {"used by" if mistake == KEPT else "cut off by": _lines(lines)} if lines else {}
        text = "a backward pass needs a graph that an earlier pass has freed."
        places = [*lines, self.by.place, self.built, self.event.place]
        yield _finding("freed", facts.networks_of(self.behind), told, text, places, mistake, why, cure)

    def explanation(self, facts: Facts) -> tuple[str, str, str]:
        """Return the mistake, and why the graph is gone and the cure, if these are not the mistake's own."""
        why = f"`{'autograd.grad' if self.by.kind == 'grad' else 'backward'}()` frees the graph that it goes through"
        if self.by.kind == "grad":
            cure = "`create_graph=True` in that call if a loss is to change its result; else `retain_graph=True`."
            return ("penalty-frees-graph", "", "") if self.by.create_graph else (TWICE, why, cure)
        if self.kept:
            return KEPT, "", ""
        here, moved = facts.networks_of(self.behind), set().union(*(p.reached for p in facts.record.passes))
        unmoved = [name for name, numbers in facts.numbers.items() if not numbers.keys() & moved]
        ends = [name for name in unmoved if facts.is_fed_by(self.event, name) and facts.holders_of(name)]
        if ends and here:
            why += f", and this one ends at what {joined(ends)} computed, which has no graph here"
            cure = f"If this loss is for {joined(ends)}, run {joined(here)} again on that output, without `detach()`"
            return DETACHED, why, f"{cure}; if it is for {joined(here)}, {ONCE}."
        why += f": that of both passes, to {joined(here) or 'the same tensors'}"
        holders = [number for number, held in facts.accounts_of.items() if self.ahead & {*held}]
        if len(holders) < 2 or not here:
            return TWICE, why, f"{ONCE}; or compute it anew for each pass, or `retain_graph=True` in the first."
        judges = [a for a in here if any(a != b and facts.leads_through(self.event, a, b) for b in here)]
        first = joined([name for name in here if name not in judges] or here)
        cure = f"`detach()` what {first} computed, in the loss that is not for {first}"
        cure += f", run {joined(judges)} once for each loss, and limit the other by `inputs=`" if judges else ""
        return TWICE, why, f"{cure}; if both are for {first}, {ONCE}."


def trace_freed(event: Pass, roots: list, losses: list, record: Record, lineage: Lineage) -> Iterator[Freed]:
    """Yield what is known of the pass that freed a graph, if it was seen."""
    before = [p for p in record.events if isinstance(p, Pass) and p.nodes and p is not event]
    nodes = {node._sequence_nr(): node for node in nodes_of(roots)}
    for earlier in reversed(before):
        frees = set() if earlier.keeps else earlier.nodes
        if not (freed := [number for number in frees & nodes.keys() if _is_freed(nodes[number])]):
            continue
        new = [nodes[number] for number in sorted(nodes.keys() - frees)]
        used = [node for node in new if any(n and n._sequence_nr() in frees for n, _ in node.next_functions)]
        node = next((nodes[n] for n in sorted(freed, reverse=True) if lineage.line(nodes[n])), nodes[max(freed)])
        built, line = lineage.line_of(node), lineage.line(node)
        # The freed part is older than an earlier pass of this line, and its own line has run again since.
        kept = any(max(freed) <= max(old.nodes) for old in before if old.callers == event.callers)
        kept &= any(lines[0] == line and number > max(earlier.nodes) for number, lines in lineage.lines.items())
        kept &= not all(node._sequence_nr() in frees for node in roots)  # else it is this very loss
        cut = [place for mistake, place in _past(losses, lineage)[1] if mistake == DETACHED]
        behind, ahead = lineage.reach([nodes[number] for number in freed]), lineage.reach(roots) | earlier.reached
        yield Freed(event, earlier, built, [*map(lineage.line_of, used)], cut, kept, behind, ahead)
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


@dataclass
class Lost:
    """What is known of an error "does not require grad and does not have a grad_fn"."""

    event: Pass
    forwards: list[Forward]  # that the loss was computed by, without their parts
    cuts: list[tuple[str, Place]]  # what cut something behind it off its graph: the mistake, the place
    frozen: set[int]  # parameters, now

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, if a cause was seen."""
        forwards = [forward for forward in self.forwards if forward.reached & facts.owned] or self.forwards
        blind = [forward.place for forward in forwards if forward.blind]
        frozen = [forward for forward in forwards if forward.frozen and not (forward.blind or forward.graph)]
        cuts = [cut for cut in self.cuts if cut[0] != "loss-rebuilt"] or ([] if forwards else self.cuts)
        told, why, cure = {"wanted by": str(self.event.place)}, "", ""
        numbers = set().union(*(forward.reached for forward in frozen))
        if not (forwards or cuts):  # nothing was seen: what is trained and frozen now
            numbers = {n for ids in facts.numbers.values() if ids.keys() <= self.frozen & facts.owned for n in ids}
        if numbers and (not forwards or forwards[-1] in frozen):  # the network next to the loss
            lines = [facts.record.frozen.get(number) for number in sorted(numbers)]
            used, names = [forward.place for forward in frozen], joined(facts.networks_of(numbers))
            mistake, places = "all-frozen", [*lines, *used]
            told |= {"frozen by": _lines(lines), "used by": _lines(used)}
            why = f"no parameter of {names} required a gradient"
            cure = f"If this loss is for {names}, call `requires_grad_(True)` before that."
            if rest := joined(facts.networks_of(set().union(*(f.reached for f in forwards if not f.frozen)))):
                told["cut off by"] = _lines([place for name, place in cuts if name == DETACHED] or blind)
                why += f", and what {rest} computed came without its graph"
                cure += f" If it is for {rest}, cut {rest} off only in losses that are not."
        elif forwards and forwards[-1].blind:
            mistake, places, told["under no_grad"] = "no-graph", blind[::-1], _lines(blind)
        elif cuts:
            mistake, places = cuts[-1][0], [place for name, place in cuts if name == cuts[-1][0]]
            told["cut off by"] = _lines(places)
        else:
            return
        text = "a backward pass was called on a loss without a graph."
        yield _finding("dead", (), told, text, [*places, self.event.place], mistake, why, cure)


def trace_lost(event: Pass, losses: list, record: Record, lineage: Lineage) -> Lost:
    """Return what is known of how a loss without a graph was computed."""
    numbers, cuts = _past(losses, lineage)
    forwards = [record.forwards[number] for number in numbers]
    for forward in forwards:
        forward.reached = (
            set() if (module := forward.module()) is None else record.numbers_of(nn.Module.parameters(module))
        )
    parts = {id(part) for forward in forwards for part in forward.parts}
    frozen = {a.number for a in record.accounts.values() if not getattr(a.parameter(), "requires_grad", True)}
    return Lost(event, [f for f in forwards if f.reached and id(f) not in parts], cuts, frozen)


def _past(losses: list[Tensor], lineage: Lineage) -> tuple[list[int], list[tuple[str, Place]]]:
    """Return the forward passes behind losses, by number, and what cut something off its graph: mistake and place."""
    cuts = [cut for loss in losses for cut in lineage.memory_of(loss).cuts]
    return numbers_in(FORWARD, lineage.sources_of(losses)), cuts
