"""A graph that a backward pass needs, and that an earlier one has freed."""

from collections.abc import Iterator

from gradient_audit.errors import explained
from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.history import Call
from gradient_audit.trace import Freed

RANK = 80
SEVERITY = "error"
MEANING = "A backward pass needs a graph that an earlier pass has freed."
CURE = ""
MISTAKES = ("second-backward", "detached-fakes", "loss-kept-with-graph", "penalty-frees-graph")
EXHIBITS = ("bugs/two_losses_of_one_graph.py", "clean/one_graph_for_three_lines.py")
ONCE = "`backward()` once, on the sum of the losses"


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the passes that raised, with the pass before that freed the graph, and what both go through."""
    for event in facts.of(Freed):
        call, by = facts.history.calls[event.number], facts.history.calls[event.by]
        here, moved = facts.networks_of(event.behind), set().union(*(p.reached for p in facts.passes))
        unmoved = [name for name, numbers in facts.parameters.items() if not numbers.keys() & moved]
        ends = joined([name for name in unmoved if facts.is_fed_by(call, name) and facts.holders_of(name)])
        known = {"wanted by": [event.place], "built by": event.built, "used by": event.used, "freed by": [by.place]}
        mistake, function = "second-backward", "autograd.grad" if by.kind == "grad" else "backward"
        why = f"`{function}()` frees the graph that it goes through"
        if by.kind == "grad":
            mistake = "penalty-frees-graph" if by.began.create_graph else mistake
            cure = "`create_graph=True` if a loss is to change the result, else `retain_graph=True`, and never `False`."
        elif event.earlier:
            mistake, why, cure = "loss-kept-with-graph", "", ""
            known["used by"] = known.pop("used by")
        elif ends and here:
            mistake, known["cut off by"] = "detached-fakes", event.cuts
            why += f", and this one ends at what {ends} computed, which has no graph here"
            cure = f"If this loss is for {ends}, run {joined(here)} again on that output, without `detach()`"
            cure += f"; if it is for {joined(here)}, {ONCE}."
        else:
            why += f": that of both passes, to {joined(here) or 'the same tensors'}"
            cure = _cure_of_both(facts, call, event, here)
        text = "a backward pass needs a graph that an earlier pass has freed."
        yield explained(text, here, known, mistake, why, cure)


def _cure_of_both(facts: Facts, call: Call, event: Freed, here: tuple[str, ...]) -> str:
    """Return the cure for two losses that go through the same graph."""
    holders = [optimizer for optimizer in facts.optimizers.values() if not event.ahead.isdisjoint(optimizer.parameters)]
    if not here or len(holders) < 2:
        return f"{ONCE}; or compute it anew for each pass, `detach()` a constant, or `retain_graph=True` in the first."
    others = {name: {*here} - {name} for name in here}
    names = [n for n in here if not any(facts.leads_through(call, n, o) for o in others[n])] or [*here]
    first, it = joined(names), joined(names) if len(names) == 1 else "it"
    cure = f"`detach()` what {first} computed, in the loss that is not for {it}, and run what follows on it"
    return f"{cure} once for each loss, limited by `inputs=`; if both are for {first}, {ONCE}."
