"""A loss, or a term of one, that moves nothing."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.errors import explained
from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.graphs import calls_cut_off
from gradient_audit.history import Call, TermRow
from gradient_audit.holders import unused_gradients
from gradient_audit.places import Place
from gradient_audit.terms import cut_of, dead_terms, left_out_networks, rebuilt_losses, zero_terms
from gradient_audit.trace import NONE, GraphMissing, RequiresGradSet

RANK = 60
SEVERITY = "error"
MEANING = """A loss, or a term of one, gives no gradient to any parameter that is updated. As a question: a term that is
not 0, or that compares a value with itself, gave one of exactly zero, each time that it was measured; or a constant was
computed from networks, and was always 0; or other steps alone update what a term was computed from, as those of D do
for D(real)."""
CURE = """See whether `detach()`, `no_grad()`, `.item()`, `sample()` where `rsample()` is meant, or a penalty without
`create_graph=True` cuts it off, and whether the network that it should move is frozen, held by no optimizer or missing
from `inputs=`."""
MISTAKES = ("penalty-without-graph", "penalty-on-frozen", "loss-made-leaf")
EXHIBITS = ("bugs/penalty_per_sample_without_graph.py", "bugs/g_loss_under_no_grad.py", "clean/kl_of_distributions.py")
CONSTANT = "If it is a target, a baseline or a number to print, this is right. If not: "
SHARED = "If networks share this loss, as G and D do one with D(real), this is right, and it can be left out. If not: "
UNKNOWN = "See whether `detach()`, `no_grad()` or `.item()` cuts it off."
ZERO = """If a ReLU or a mask holds it back, or it is constant, this is right; if not, see whether a value is taken from
itself, as where the teacher is the student: a straight-through estimator is `x - q.detach()`."""

CURES = {
    "all-frozen": "If this is for {}, call its `requires_grad_(True)` before.",
    "penalty-without-graph": "Call this `autograd.grad()` with `create_graph=True`.",
    "detached-fakes": "In this loss, leave out this `detach()` or `.data`.",
    "no-graph": "Compute this outside of `no_grad()`; of a distribution, take `rsample()`.",
    "loss-rebuilt": "Join tensors with `torch.stack()`, without `.item()`, `.tolist()` and `torch.tensor()`.",
}
AT_ZERO = "has been exactly 0 in every pass, and is computed from networks."


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield losses without a graph, passes that reached nothing, and terms that move nothing."""
    for event in facts.of(GraphMissing):
        yield _without_graph(facts, event)
    yield from _dead_passes(facts)
    left_out = facts.once(left_out_networks)
    ownerless = set().union(*(unused.ownerless for unused in facts.once(unused_gradients) if not unused.meant))
    found: dict[tuple, list[tuple[Call, TermRow]]] = defaultdict(list)  # of those that one line cuts off, all
    for dead in facts.once(dead_terms):
        p, row = dead.pairs[0]
        is_told = {*facts.networks_of(row.term.reached)} & left_out  # by the rule `ownerless`
        if not (is_told or NONE < row.term.reached <= ownerless):
            cure = "" if dead.proved else ZERO if row.term.value == 0 else SHARED if row.term.measured else CONSTANT
            cut = cut_of(facts, row.term) if cure != ZERO else None
            found[cure, cut or (row, None), p.place].append((p, row))
    for (cure, (mistake, cut), place), pairs in found.items():
        networks = [name for name in facts.parameters if any(p.cells[name] == "used" for p, _ in pairs)]
        is_zero, question = pairs[0][1].term.value == 0, bool(cure)
        names = [*dict.fromkeys(_words_of(row) for _, row in pairs)]
        verb = "contributes" if len(names) == 1 else "contribute"
        text = AT_ZERO if is_zero else f"{verb} no gradient to any parameter that is updated."
        places = [cut, *(row.place for _, row in pairs), place]
        frozen = _frozen_networks(facts, networks, places[:-1]) if cut else []
        mistake = "all-frozen" if frozen else mistake
        advice = CURES.get(mistake, UNKNOWN if question else "").replace("{}", joined(frozen))
        cure = cure if cure == ZERO else f"{cure}{advice}"
        if cut and (left := _left_out_networks(facts, pairs)):
            cure += f" If it is for {joined(left)}, which no optimizer holds, give that to one."
        known = mistake if mistake in CURES else ""
        yield Sentence(f"{joined(names)} {text}", networks, filter(None, places), cure, question, known)
    for p, row, numbers in facts.once(zero_terms):
        text = f"{_words_of(row)} gives {{}} a gradient of exactly zero, each time that it was measured."
        places = filter(None, (row.place, p.place))
        yield Sentence(text, facts.networks_of(numbers), places, ZERO, question=True)


def _frozen_networks(facts: Facts, networks: list[str], places: list[Place | None]) -> list[str]:
    """Return which of these networks were frozen when they ran at one of these lines, whatever the expression."""
    lines = {place[:2] for place in places if place}
    calls = [row.event for row in facts.forwards if row.event.is_frozen and row.place[:2] in lines]
    return [name for name in networks if any(facts.parameters[name].keys() & call.parameters for call in calls)]


def _left_out_networks(facts: Facts, pairs: list[tuple[Call, TermRow]]) -> list[str]:
    """Return the networks that terms lead to, and that nothing trains."""
    trained, reached = facts.owned | facts.moved_parameters, set().union(*(row.term.reached for _, row in pairs))
    return [name for name in facts.networks_of(reached) if not facts.parameters[name].keys() & trained]


def _words_of(row: TermRow) -> str:
    name = "a term of the sum" if row.term.value is not None else f"`{row.term.name}`"
    return f"{name} from {row.place.where}" if row.place else name


def _dead_passes(facts: Facts) -> Iterator[Sentence]:
    """Yield the passes that reached nothing that is trained."""
    for p in facts.passes if facts.optimizers or facts.networks else ():  # else nothing was to be trained
        # A gradient of a plain tensor may be read, as FGSM reads that of images.
        serves = p.reached or p.users or p.leaves & facts.owned_leaves or (p.leaves and p.place in facts.read_lines)
        if p.split and not (p.raised or serves or p in facts.once(calls_cut_off)):  # `unreached` names that line
            text = "a backward pass reached no parameter of any network."
            if cut := facts.once(rebuilt_losses).get(p):
                cure = "Join losses with `torch.stack()`, without `.item()` and `requires_grad=True`."
                yield Sentence(text, (), [cut, p.place], cure, mistake="loss-made-leaf")
            else:
                yield Sentence(text, (), [p.place])


def _without_graph(facts: Facts, event: GraphMissing) -> Sentence:
    """Return the sentence about an error "does not require grad and does not have a grad_fn"."""
    rows = [facts.history.forwards[number] for number in event.forwards]
    rows = [row for row in rows if row.event.parameters & facts.owned] or rows
    frozen = [r for r in rows if r.event.is_frozen and not (r.event.without_grad or r.event.has_graph)]
    cuts: dict[str, list[Place]] = {}
    for mistake, place, _ in event.cuts:
        cuts[mistake] = [*cuts.pop(mistake, []), place]
    cuts = {mistake: at for mistake, at in cuts.items() if mistake != "loss-rebuilt"} or ({} if rows else cuts)
    under_no_grad = cuts.get("no-graph", [])[::-1] or [row.place for row in rows[::-1] if row.event.without_grad]
    numbers = set().union(*(row.event.parameters for row in frozen))
    if not (rows or cuts):  # nothing was seen: what is trained and frozen now
        trained = event.frozen & facts.owned
        numbers = {n for ids in facts.parameters.values() if ids.keys() <= trained for n in ids}
    known, why, cure = {"wanted by": [event.place]}, "", ""
    if numbers and (not rows or rows[-1] in frozen):  # the network next to the loss
        mistake, names = "all-frozen", joined(facts.networks_of(numbers)) or "the network"
        known["cut off by"] = cuts.get("detached-fakes", under_no_grad)
        known["used by"] = [row.place for row in frozen]
        places = {n: None if e.on else e.place for e in facts.of(RequiresGradSet) for n in e.parameters}
        known["frozen by"] = [places.get(number) for number in sorted(numbers)]
        why = f"no parameter of {names} required a gradient, and nothing before {names} has a graph"
        cure = f"If this loss is for {names}, call `requires_grad_(True)` before; else do not cut off what it is for."
    elif rows and rows[-1].event.without_grad:
        mistake, known["under no_grad"] = "no-graph", under_no_grad
    elif cuts:
        mistake = [*cuts][-1]
        known["cut off by"] = cuts[mistake]
    else:
        mistake, why, cure = "no-graph", "nothing behind it needs a gradient", "Call `requires_grad_(True)` before it."
    text = "a backward pass was called on a loss without a graph."
    return explained(text, (), known, mistake, why, cure)
