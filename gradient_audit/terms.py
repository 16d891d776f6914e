"""What rules know together of the terms of losses, and of optimizers that never step."""

from dataclasses import dataclass

from gradient_audit.facts import Facts
from gradient_audit.history import HAND, Call, TermRow
from gradient_audit.places import Place
from gradient_audit.trace import OTHER, Term

IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one


@dataclass
class Idle:
    """An optimizer that never stepped, though its parameters got gradients."""

    optimizer: int
    parameters: set[int]
    passes: list[Call]  # that reached these
    dropped: list[Call]  # of those that reached nothing else: the gradients were cleared


def idle_optimizers(facts: Facts) -> list[Idle]:
    """Return the optimizers that never stepped, while another one stepped often, or none did in the whole script."""
    by_hand = facts.steps[HAND].moved_parameters if HAND in facts.steps else set()
    idle = []
    for key in facts.optimizers.keys() - facts.steps.keys():
        numbers = {*facts.optimizers[key].parameters} - facts.stepped - by_hand
        passes = [p for p in facts.passes if p.reached & numbers and not p.raised]
        alone = (p for p in passes if p.reached <= numbers)
        dropped = [p for p in alone if not any(p.number in facts.balances[n].passes for n in p.reached)]
        wanted = 2 if dropped else IDLE_AFTER
        watched = all(p.split for p in passes)  # else it is not seen who read their gradients
        if facts.end.whole and watched and not facts.steps:
            wanted = 1 if any(p.read or p.number in facts.history.ledger.skipped for p in passes) else 0
        if facts.networks_of(numbers) and passes and facts.most_steps >= wanted:
            idle.append(Idle(key, numbers, passes, dropped))
    return idle


def idle_parameters(facts: Facts) -> set[int]:
    """Return the parameters of idle optimizers: of these, no other rule says what is dead or wasted."""
    return set().union(*(idle.parameters for idle in facts.once(idle_optimizers)))


@dataclass
class DeadTerm:
    """A term that was dead in all passes of its line."""

    pairs: list[tuple[Call, TermRow]]
    proved: bool


def dead_terms(facts: Facts) -> list[DeadTerm]:
    """Return the terms that contribute no gradient to what is updated, in all passes of their line."""
    used = set().union(*(p.used for p in facts.passes))
    dead = []
    for pairs in facts.rows.values():
        constants = {row.term.value for _, row in pairs}
        if constants == {0}:
            if len(pairs) > 1 and all(row.term.sources for _, row in pairs):
                dead.append(DeadTerm(pairs, False))
        elif None not in constants:  # one that changes, and comes from what is trained, was cut off
            changes = len(constants) > 1
            calls = [facts.history.calls[number].began for _, row in pairs for number in row.term.calls]
            # A loss is proved to be cut off by a penalty without `create_graph`, or by no_grad(); one that is detached
            # later, as samples by Langevin's dynamics are, may be meant to be a constant.
            last = {cut[0] for _, row in pairs if (cut := cut_of(facts, row.term))}
            proved = any(call.kind == "grad" and not call.create_graph for call in calls)
            proved &= last <= {"penalty-without-graph"}
            proved |= changes and any(p.used & row.term.without_grad for p, row in pairs)
            if (proved or changes) and any(row.term.sources & used for _, row in pairs):
                dead.append(DeadTerm(pairs, proved))
        elif constants == {None} and _moves_nothing(facts, pairs):
            dead.append(DeadTerm(pairs, not all(_is_shared(facts, p, row.term) for p, row in pairs)))
    return dead


def _moves_nothing(facts: Facts, pairs: list[tuple[Call, TermRow]]) -> bool:
    """Whether a term with a graph reaches nothing that a step used, in passes of which one was used."""
    inside = set().union(*facts.parameters.values())
    others = {OTHER}.union(*(row.term.reached for _, row in pairs)) - inside
    # A leaf that the script made of what is trained is alive if its gradient is read; so are parameters of a copy.
    read = any(p.place in facts.read_lines or p.leaves & facts.owned_leaves for p, _ in pairs)
    is_copy = any((row.term.sources - row.term.reached) & p.used or row.term.reached - {OTHER} for p, row in pairs)
    alive = (set() if is_copy and not read else others) | facts.once(idle_parameters)
    goes_on = any(row.crossed_by for _, row in pairs)
    # In another pass of the same sum, for another network's step, it may move that one.
    last, row = pairs[-1]
    turns = [q for q in facts.passes if row.term.reached & q.used and not last.used & q.used]
    goes_on |= any(_outline(q) == _outline(last) for q in turns)
    moves = any(row.term.reached & (alive | p.used) for p, row in pairs)
    return any(p.users for p, _ in pairs) and not (goes_on or moves)


def _is_shared(facts: Facts, p: Call, term: Term) -> bool:
    """Whether a term is for other networks, of which nothing was cut off, and another term leads on through these.

    As D(real) in a value function that G shares.
    """
    is_of_others = bool(term.sources) and term.sources <= term.reached & facts.stepped
    return is_of_others and any(term.reached < row.term.reached for row in p.terms)


def _outline(p: Call) -> list[tuple]:
    return [(row.term.name, row.term.reached) for row in p.terms]


def rebuilt_losses(facts: Facts) -> dict[Call, Place]:
    """Return the passes that reached nothing, as their loss was made anew from numbers, with the line that made it."""
    return {
        p: place
        for p in facts.passes
        if p.leaves and not p.reached
        for mistake, place, _ in p.began.cuts
        if mistake == "loss-rebuilt"
    }


def cut_of(facts: Facts, term: Term) -> tuple[str, Place] | None:
    """Return the mistake and the line, nearest to the loss, that cut a term off from what is trained."""
    lost = (facts.owned | facts.moved_parameters) - term.reached
    return next(((mistake, place) for mistake, place, sources in term.cuts[::-1] if sources & lost), None)


def left_out_networks(facts: Facts) -> set[str]:
    """Return the networks that no optimizer holds, and to which alone a dead term leads: `ownerless` says so."""
    terms = [dead.pairs[0][1].term for dead in facts.once(dead_terms)]
    led_to = {name for term in terms if not cut_of(facts, term) for name in facts.networks_of(term.reached)}
    trained = facts.owned | facts.moved_parameters
    return {name for name in led_to if facts.optimizers and not facts.parameters[name].keys() & trained}


def zero_terms(facts: Facts) -> list[tuple[Call, TermRow, set[int]]]:
    """Return the terms whose gradient was exactly zero each time that it was measured, with what they should move."""
    found = []
    for pairs in facts.rows.values():
        moving = [(p, row, p.used & row.term.reached) for p, row in pairs if row.term.measured and not row.term.at_zero]
        moving = [(p, row, numbers) for p, row, numbers in moving if numbers]
        zero = (
            row.term.measured.get(number, (1, 1))[0] == 0 and not row.term.weightless
            for _, row, numbers in moving
            for number in numbers
        )
        if len(moving) > 1 and all(zero):
            found.append(moving[0])
    return found
