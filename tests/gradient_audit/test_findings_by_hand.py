"""The audit against a model of it, on random sequences of calls.

`ByHand` is a second implementation of what an audit must report, and uses none of its hooks. It is told every call and
computes the gradients of each term of each backward pass alone, with `torch.autograd.grad`. For each parameter it keeps
the passes whose gradients `.grad` is the sum of: a pass adds its own, `zero_grad` drops them all, clipping scales them,
and a step of an optimizer that holds the parameter marks them as used. The audit's table and findings follow from these
marks; at each step the sum is also compared with `.grad`. Hypothesis draws which optimizers hold which parameter, the
form of the optimizers, and up to 25 calls.
"""

import pytest
import torch
from audited import cells
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradient_audit import GradientAudit
from gradient_audit.budget import DETAILED
from gradient_audit.uses import IDLE_AFTER

pytestmark = pytest.mark.usefixtures("few_objects")

ONE = st.integers(0, 2)  # a network, or an optimizer
CHAIN = st.tuples(ONE, ONE, st.none() | ONE)  # the first and the last network, and the one whose input is detached
CALLS = st.one_of(
    st.tuples(st.just("backward"), st.lists(CHAIN, min_size=1, max_size=3), st.none()),
    st.tuples(st.just("backward"), st.just([(0, 2, None)]), st.sets(ONE, min_size=1)),
    st.tuples(st.just("backward"), st.just([(0, 2, None)]), st.none()),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("zero"), ONE, st.booleans()),
    st.tuples(st.just("zero network"), ONE, st.booleans()),
    st.tuples(st.just("freeze"), ONE, st.booleans()),
    st.tuples(st.just("clip"), ONE),
)
# Which optimizers hold each of the six parameters, two of each network.
OWNERS = st.sampled_from([((0,), (0,), (1,), (1,), (2,), (2,)), ((0,), (0,), (0,), (0,), (1,), (1,))]) | st.tuples(
    *[st.sampled_from([(), (0,), (1,), (2,), (0, 1)])] * 6
)


class ByHand:
    """The account of one run, kept from the calls themselves and from each pass computed alone."""

    def __init__(self, networks, owners):
        self.networks, self.owners = networks, owners  # owners: parameter -> its optimizers
        self.parameters = [parameter for network in networks for parameter in network.parameters()]
        self.held = {p: {} for p in self.parameters}  # pass -> its part of the gradient
        self.terms, self.used, self.stale = [], [], set()
        self.taker = {p: {} for p in self.parameters}  # pass in `held` -> the optimizer that stepped on it first
        self.last_step, self.asked, self.fed, self.twice, self.sums = {}, set(), set(), set(), set()
        self.calls = []  # (network, whether a pass came through the graph; None: it built none)
        self.leads = []  # of each pass: (j, i) where the gradient comes to network i through network j
        self.steps = dict.fromkeys({o for owner in owners.values() for o in owner}, 0)
        self.bare = dict(self.steps)  # steps that found no gradient, since the last one that did

    @property
    def reached(self):
        return [set().union(*terms) for terms in self.terms]

    def backward(self, losses, inputs, leads):
        wanted = [p for p in self.parameters if p.requires_grad and (inputs is None or p in inputs)]
        terms = []
        for loss in losses:
            alone = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            parts = {p: part for p, part in zip(wanted, alone, strict=True) if part is not None}
            for p, part in parts.items():
                self.held[p][len(self.used)] = self.held[p].get(len(self.used), 0) + part
            terms.append(set(parts))
        self.terms.append(terms)
        self.leads.append(leads)
        self.used.append({})

    def step(self, optimizer):
        for p in self.parameters:
            if optimizer not in self.owners[p]:
                continue
            total = sum(self.held[p].values()) if self.held[p] else torch.zeros_like(p)
            gradient = p.grad if p.grad is not None else torch.zeros_like(p)
            torch.testing.assert_close(gradient, total, rtol=1e-12, atol=1e-12)
            if p.requires_grad:
                self.asked.add(p)
            for number in self.held[p]:
                self.fed.add(p)
                self.used[number].setdefault(p, set()).add(optimizer)
                if self.taker[p].setdefault(number, optimizer) != optimizer:
                    self.twice.add((optimizer, p))
                elif number < self.last_step.get(optimizer, 0):
                    self.stale.add((optimizer, p))
            if len(self.held[p]) > 1:
                self.sums.add((optimizer, p, frozenset(self.held[p])))
        found = any(self.held[p] for p in self.parameters if optimizer in self.owners[p])
        self.bare[optimizer] = 0 if found else self.bare[optimizer] + 1
        self.last_step[optimizer] = len(self.used)
        self.steps[optimizer] += 1

    def clear(self, parameters):
        for p in parameters:
            self.held[p].clear()
            self.taker[p].clear()

    def clip(self, parameters, factor):
        for p in parameters:
            self.held[p] = {number: part * factor for number, part in self.held[p].items()}

    def findings(self):
        of = [set(network.parameters()) for network in self.networks]

        def names_of(parameters):
            parameters = set(parameters)
            return tuple(f"n{i}" for i, mine in enumerate(of) if mine & parameters)

        crossed = [
            [group for group in self.groups(n, of) if self.players(n, group, of) > 1] for n in range(len(self.used))
        ]
        mixed = set()
        for optimizer, p, passes in self.sums:
            for number in passes if not all(crossed[n] for n in passes) else ():
                for group in crossed[number]:
                    mine = next(i for i, parameters in enumerate(of) if p in parameters)
                    others = [i for i in group if optimizer not in self.movers(number, of[i])]
                    if mine in group and optimizer in self.movers(number, of[mine]) and others:
                        mixed.add(number)
                        yield "mixed", tuple(f"n{i}" for i in sorted(group))
        if not mixed:  # all passes have the same line
            yield from {("meant?", tuple(f"n{i}" for i in sorted(group))) for groups in crossed for group in groups}
        for optimizer in {optimizer for optimizer, _ in self.stale}:
            yield "stale", names_of(p for by, p in self.stale if by == optimizer)
        for optimizer in {optimizer for optimizer, _ in self.twice}:
            yield "twice", names_of(p for by, p in self.twice if by == optimizer)
        for optimizer in {optimizer for optimizer, bare in self.bare.items() if bare > 1}:
            mine = {p for p in self.parameters if optimizer in self.owners[p]}
            if mine & self.fed:
                yield "unreached", names_of(mine)
        excused = set()
        for optimizer in {optimizer for optimizer, steps in self.steps.items() if not steps}:
            mine = {p for p in self.parameters if optimizer in self.owners[p]} - self.asked
            got = [reached for reached in self.reached if reached & mine]
            dropped = any(
                reached & mine and reached <= mine and not any(number in self.held[p] for p in reached)
                for number, reached in enumerate(self.reached)
            )
            most = max(self.steps.values())
            if got and (most >= IDLE_AFTER or (most > 1 and dropped)):
                excused |= mine
                yield "idle", names_of(mine)
        ever = set().union(*self.reached)
        held = {p for p, owners in self.owners.items() if owners}
        dead = [*self.dead(excused)]
        left_out = {  # of all optimizers, and a dead term leads there: that is told in place of the term
            i for _, term in dead for i, mine in enumerate(of) if held and mine & term and not mine & (held | self.fed)
        }
        told = set(left_out)
        for i, mine in enumerate(of):
            if mine & (self.asked - self.fed):
                yield "unreached", (f"n{i}",)
            orphans = (mine - held) & ever
            if orphans and held:
                numbers = [n for n, reached in enumerate(self.reached) if reached & mine]
                led_to = any(of[j] & held for n in numbers for j, to in self.leads[n] if to == i)
                judged = numbers and not led_to and not any(self.reached[n] <= mine for n in numbers)
                unfrozen = judged and not mine & held and i not in left_out
                told |= {i} if unfrozen else set()
                yield "unfrozen" if unfrozen else "ownerless", (f"n{i}",)
        for i, mine in enumerate(of):
            wasted = (mine & (r - u.keys() - excused) for r, u in zip(self.reached, self.used, strict=True))
            if i not in told and any(wasted):
                yield "wasted", (f"n{i}",)
        graphs = [(i, needed) for i, needed in self.calls if needed is not None]
        if unused := {i for i, _ in graphs} - {i for i, needed in graphs if needed}:
            yield "graph", tuple(f"n{i}" for i in sorted(unused))
        for first, term in dead:
            if not any(of[i] & term for i in left_out):
                yield "dead", names_of(first)

    def dead(self, excused):
        """The terms that no step used in any pass, each with what the first pass moved."""
        terms = {}
        for number, parts in enumerate(self.terms):
            for index, term in enumerate(parts if len(parts) > 1 else ()):
                terms.setdefault((len(parts), index), []).append((number, term))
        for pairs in terms.values():
            if any(self.used[n] for n, _ in pairs) and not any(t & (excused | self.used[n].keys()) for n, t in pairs):
                yield self.used[pairs[0][0]], pairs[0][1]

    def movers(self, number, parameters):
        return set().union(*(by for p, by in self.used[number].items() if p in parameters))

    def groups(self, number, of):
        """The sets of networks that the terms of a pass move together."""
        return united(
            {i for i, mine in enumerate(of) if mine & term & self.used[number].keys()} for term in self.terms[number]
        )

    def players(self, number, group, of):
        return len(united(self.movers(number, of[i]) for i in group))


def united(sets):
    """Unite the sets that have an element in common."""
    sets = [set(one) for one in sets if one]
    for one in sets:
        for other in sets:
            if one is not other and one & other:
                return united([s for s in sets if s is not one and s is not other] + [one | other])
    return sets


@settings(max_examples=60, deadline=None)
@given(owners=OWNERS, fused=st.booleans(), calls=st.lists(CALLS, min_size=5, max_size=25))
def test_any_order_of_calls_against_an_account_by_hand(owners, fused, calls):
    """Sums of chains of three networks, cut by detach() or not, under any distribution of optimizers."""
    torch.manual_seed(0)
    networks = [nn.Sequential(nn.Linear(2, 2), nn.Tanh()).double() for _ in range(3)]
    parameters = [parameter for network in networks for parameter in network.parameters()]
    owner = dict(zip(parameters, owners, strict=True))
    optimizers = {
        i: torch.optim.SGD([p for p in parameters if i in owner[p]], lr=0.01, fused=fused)
        for i in range(3)
        if any(i in holders for holders in owners)
    }
    by_hand = ByHand(networks, owner)
    with GradientAudit(**{f"n{i}": network for i, network in enumerate(networks)}) as audit:
        for what, target, *rest in calls:
            if what == "backward":
                if len(by_hand.used) < DETAILED:
                    backward(by_hand, networks, target, *rest)
            elif what == "step" and target in optimizers:
                by_hand.step(target)
                optimizers[target].step()
            elif what == "zero" and target in optimizers:
                optimizers[target].zero_grad(*rest)
                by_hand.clear(p for p in parameters if target in owner[p])
            elif what == "zero network":
                networks[target].zero_grad(*rest)
                by_hand.clear(networks[target].parameters())
            elif what == "freeze":
                networks[target].requires_grad_(*rest)
            elif what == "clip":
                norm = nn.utils.clip_grad_norm_(networks[target].parameters(), 0.1)
                by_hand.clip(networks[target].parameters(), min(1.0, 0.1 / (norm.item() + 1e-6)))
    expected = [
        tuple(
            "used" if mine & used.keys() else "wasted" if mine & reached else "-"
            for mine in (set(network.parameters()) for network in networks)
        )
        for reached, used in zip(by_hand.reached, by_hand.used, strict=True)
    ]
    assert cells(audit) == expected
    # Who holds what, judges that a loss moves, clipping and late freezing have tests of their own.
    told = [
        f
        for f in audit.findings
        if f.kind not in ("shared", "clipped", "late", "opposed") and " alone on " not in f.text
    ]
    alone = {(f.kind, (name,)) for f in told for name in f.networks if f.kind in ("wasted", "unfrozen")}
    together = {(f.kind, f.networks) for f in told if f.kind not in ("wasted", "unfrozen")}
    assert alone | together == set(by_hand.findings())
    assert not any(p.raised for p in audit.passes)


def backward(by_hand, networks, chains, inputs):
    """Call backward() on the sum of the chains that need a gradient."""
    chosen = inputs and [p for i in inputs for p in networks[i].parameters() if p.requires_grad]
    if inputs is not None and not chosen:
        return
    losses, calls, leads = [], [], set()
    for start, end, cut in chains:
        hidden = torch.randn(3, 2, dtype=torch.double)
        upstream = set()
        for i in range(min(start, end), max(start, end) + 1):
            upstream = (set() if i == cut else upstream) | {p for p in networks[i].parameters() if p.requires_grad}
            hidden = networks[i](hidden.detach() if i == cut else hidden)
            passed = cut is None or not i < cut <= max(start, end)
            if passed and any(p.requires_grad for p in networks[i].parameters()):
                leads |= {(j, i) for j in range(i + 1, max(start, end) + 1)}
            calls.append((i, hidden.requires_grad, passed and upstream & set(chosen or upstream)))
        if hidden.requires_grad:
            losses.append(hidden.square().sum())
    ran = bool(losses)
    by_hand.calls += [(i, bool(ran and needed) if graph else None) for i, graph, needed in calls]
    if ran:
        by_hand.backward(losses, chosen and set(chosen), leads)
        sum(losses[1:], losses[0]).backward(inputs=chosen)
