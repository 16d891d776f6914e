"""The judgement: a function of the trace, which finds what is wrong, doubtful or wasteful, and what did not run."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gradient_audit.facts import Facts
from gradient_audit.findings import SEVERITIES, Finding, joined
from gradient_audit.graphs import calls_cut_off
from gradient_audit.history import Call, Row
from gradient_audit.holders import unjudged_passes, unused_gradients
from gradient_audit.rules import rules
from gradient_audit.terms import dead_terms, idle_parameters
from gradient_audit.trace import Compiled, Excerpt, Network, Trace


@dataclass
class Judgement:
    """What a trace shows."""

    findings: list[Finding] = field(default_factory=list)  # what raised first, then errors
    not_run: str = ""  # what they are not about
    waiting: tuple[str, ...] = ()  # networks whose optimizer never stepped
    events: list[Row] = field(default_factory=list)  # in their order
    passes: list[Call] = field(default_factory=list)  # among the events
    networks: dict[str, Network] = field(default_factory=dict)
    unjudged: str = ""  # the first line whose gradients were used, if they were, by what was not seen
    excerpts: dict[str, Mapping[int, str]] = field(default_factory=dict)  # by file: the lines around what is named
    version: str = ""  # of PyTorch


def judge(trace: Trace) -> Judgement:
    """Return what a trace shows; the trace stays as it is."""
    facts = Facts(trace)
    merged: dict[Finding, list[str]] = defaultdict(list)  # the networks of which the same is told
    for finding in (finding for rule in rules() for finding in rule.findings(facts)):
        alike = replace(finding, networks=())
        merged[alike] += [name for name in finding.networks if name not in merged[alike]]
    found = [replace(f, networks=tuple(n), text=f.text.replace("{}", joined(n))) for f, n in merged.items()]
    told = {(f.kind, f.text, f.lines) for f in found if f.severity == "error"}  # what is an error needs no question
    found = [f for f in found if f.severity == "error" or (f.kind, f.text, f.lines) not in told]
    if any(p.raised for p in facts.passes):  # what had run is no whole step
        found = [finding for finding in found if finding.severity != "waste"]
    ranks = {rule.kind: rule.rank for rule in rules()}
    found.sort(key=lambda f: ([*SEVERITIES].index(f.severity), not f.facts, ranks[f.kind]))
    for dead in facts.once(dead_terms):
        for _, row in dead.pairs:
            row.dead = True
    _tell_of_excused(facts)
    for call in facts.history.calls.values():
        telling = [row for row in call.terms if row.term.value is None or row.dead]  # those with a graph, and dead ones
        call.terms = telling if len(telling) > 1 else []
    excerpts = {excerpt.file: excerpt.lines for excerpt in facts.of(Excerpt)}
    wrong = any(finding.severity == "error" for finding in found)
    first = "".join(p.place.where for p in facts.once(unjudged_passes)[:1] if not wrong)
    shown = facts.events, facts.passes, facts.networks
    waiting = _waiting_networks(facts)
    return Judgement(found, _not_run(facts, waiting), waiting, *shown, first, excerpts, facts.end.version)


def _tell_of_excused(facts: Facts) -> None:
    """Put "read" in place of "wasted" where no finding says that gradients of a pass were wasted."""
    others = facts.once(calls_cut_off) | {*facts.once(unjudged_passes)}  # other sentences are about these
    others |= {call for call in facts.history.calls.values() if call.raised}
    for unused in facts.once(unused_gradients):
        name, told = unused.network, others | {*unused.passes}
        idle = facts.once(idle_parameters) | facts.without_gradient.get(name, set())  # which have sentences, too
        idle &= facts.parameters[name].keys()
        for call in facts.history.calls.values():
            for row in () if call in told or call.reached & idle else (call, *call.terms):
                row.cells |= {name: "read"} if row.cells[name] == "wasted" else {}


def _waiting_networks(facts: Facts) -> tuple[str, ...]:
    """Return the networks that got no step, though another optimizer than theirs has stepped."""
    waiting = [{*facts.held_by(key)} - facts.moved_parameters for key in facts.optimizers if key not in facts.steps]
    return facts.networks_of(set().union(*waiting)) if facts.steps else ()


def _not_run(facts: Facts, waiting: tuple[str, ...]) -> str:
    """Say what `torch.compile` hides, and which passes, calls of autograd.grad and steps did not run."""
    lines = facts.end.lines_not_run
    parts = [joined(lines[:3]) + (" and more" if len(lines) > 3 else "")] if lines else []
    if waiting:
        parts.append(f"a step on {joined(waiting)}")
    longer = "" if facts.end.by_itself else " `--iterations` watches longer."
    said = [f"Not reached: {joined(parts)}.{longer}"] if parts else []
    for event in facts.of(Compiled):
        line = f"After `torch.compile` ({event.place.where}) operations, terms and `zero_grad()` were not watched"
        said.insert(0, f"{line}: leave it out to find more.")
    return " ".join(said)
