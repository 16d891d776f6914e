"""The audit against a model of it, on random sequences of calls.

`ByHand` is a second implementation of what an audit must report, and uses none of its hooks. It is told every call and
computes the gradients of each term of each backward pass alone, with `torch.autograd.grad`. For each parameter it keeps
the passes whose gradients `.grad` is the sum of: a pass adds its own, `zero_grad` drops them all, clipping scales them,
and a step of an optimizer that holds the parameter marks them as used. The table, and what the audit finds of steps and
of unused graphs, follow from these marks; at each step the sum is also compared with `.grad`. Hypothesis draws which
optimizers hold which parameter, the form of the optimizers, and up to 25 calls.
"""

import pytest
import torch
from audited import cells
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from gradient_audit import GradientAudit
from gradient_audit.watch.session import DETAILED

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


CUT_OFF = [("backward", [(0, 2, None)], {1}), ("backward", [(0, 1, 1)], None)]

N0, N2 = (("backward", [(0, i, None)], None) for i in (0, 2))
MISTAKEN = [N0, N2, ("step", 1), N0, ("zero", 0, False), ("step", 0), N0, ("step", 0)]


class ByHand:
    """The account of one run, kept from the calls themselves and from each pass computed alone."""

    def __init__(self, networks, owners):
        self.networks, self.owners = networks, owners  # owners: parameter -> its optimizers
        self.parameters = [parameter for network in networks for parameter in network.parameters()]
        self.held = {p: {} for p in self.parameters}  # pass -> its part of the gradient
        self.reached, self.used, self.stale = [], [], set()
        self.taker = {p: {} for p in self.parameters}  # pass in `held` -> the optimizer that stepped on it first
        self.last_step, self.asked, self.fed, self.twice = {}, set(), set(), set()
        self.calls = []  # (network, whether a pass came through the graph; None: it built none)
        # By optimizer: steps that found no gradient, since the last one that did.
        self.bare = dict.fromkeys({o for owner in owners.values() for o in owner}, 0)

    def backward(self, losses, inputs):
        wanted = [p for p in self.parameters if p.requires_grad and (inputs is None or p in inputs)]
        self.reached.append(set())
        for loss in losses:
            alone = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            parts = {p: part for p, part in zip(wanted, alone, strict=True) if part is not None}
            for p, part in parts.items():
                self.held[p][len(self.used)] = self.held[p].get(len(self.used), 0) + part
            self.reached[-1] |= parts.keys()
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
        found = any(self.held[p] for p in self.parameters if optimizer in self.owners[p])
        self.bare[optimizer] = 0 if found else self.bare[optimizer] + 1
        self.last_step[optimizer] = len(self.used)

    def clear(self, parameters):
        for p in parameters:
            self.held[p].clear()
            self.taker[p].clear()

    def clip(self, parameters, factor):
        for p in parameters:
            self.held[p] = {number: part * factor for number, part in self.held[p].items()}

    def findings(self):
        def names_of(parameters):
            parameters = set(parameters)
            return tuple(f"n{i}" for i, network in enumerate(self.networks) if {*network.parameters()} & parameters)

        for kind, pairs in {"stale": self.stale, "twice": self.twice}.items():
            for optimizer in {optimizer for optimizer, _ in pairs}:
                yield kind, names_of(p for by, p in pairs if by == optimizer)
        for optimizer in {optimizer for optimizer, bare in self.bare.items() if bare > 1}:
            mine = {p for p in self.parameters if optimizer in self.owners[p]}
            if mine & self.fed or not mine & self.asked:
                yield "unreached", names_of(mine)
        for i, network in enumerate(self.networks):
            if {*network.parameters()} & (self.asked - self.fed):
                yield "unreached", (f"n{i}",)
        graphs = [(i, needed) for i, needed in self.calls if needed is not None]
        if unused := {i for i, _ in graphs} - {i for i, needed in graphs if needed}:
            yield "graph", tuple(f"n{i}" for i in sorted(unused))


@settings(max_examples=60, deadline=None)
@example(((0,), (0,), (1,), (1,), (2,), (2,)), False, [("step", 0)] * 3 + CUT_OFF)
@example(((), (), (), (), (), (0, 1)), False, MISTAKEN)
@example(((), (), (), (2,), (), ()), False, [N0, N2, ("zero", 2, False), ("freeze", 1, False), N0, ("step", 2)])
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
    told = {(f.kind, f.networks) for f in audit.findings if f.kind in ("stale", "twice", "unreached", "graph")}
    unused = [
        {name for kind, names in pairs if kind == "graph" for name in names} for pairs in (told, by_hand.findings())
    ]
    cut_off = {name for kind, names in told if kind == "unreached" for name in names}
    assert unused[1] - cut_off <= unused[0] <= unused[1]  # one that `unreached` says to be cut off has one finding
    each = [{(kind, name) for kind, names in pairs for name in names} for pairs in (told, by_hand.findings())]
    # Of an optimizer that never found one, where others are held by none, `ownerless` tells.
    is_told = any(finding.kind == "ownerless" for finding in audit.findings)
    told_there = {pair for pair in each[1] - each[0] if is_told and pair[0] == "unreached"}
    assert {pair for pair in each[0] ^ each[1] if pair[0] != "graph"} - told_there == set()
    assert not any(p.raised for p in audit.passes)


def backward(by_hand, networks, chains, inputs):
    """Call backward() on the sum of the chains that need a gradient."""
    chosen = inputs and [p for i in inputs for p in networks[i].parameters() if p.requires_grad]
    if inputs is not None and not chosen:
        return
    losses, calls = [], []
    for start, end, cut in chains:
        hidden = torch.randn(3, 2, dtype=torch.double)
        upstream = set()
        for i in range(min(start, end), max(start, end) + 1):
            upstream = (set() if i == cut else upstream) | {p for p in networks[i].parameters() if p.requires_grad}
            hidden = networks[i](hidden.detach() if i == cut else hidden)
            passed = cut is None or not i < cut <= max(start, end)
            calls.append((i, hidden.requires_grad, passed and upstream & set(chosen or upstream)))
        if hidden.requires_grad:
            losses.append(hidden.square().sum())
    ran = bool(losses)
    by_hand.calls += [(i, bool(ran and needed) if graph else None) for i, graph, needed in calls]
    if ran:
        by_hand.backward(losses, chosen and set(chosen))
        sum(losses[1:], losses[0]).backward(inputs=chosen)
