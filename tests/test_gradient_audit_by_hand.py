"""The audit against a model of it, on random sequences of calls.

`ByHand` is a second implementation of what an audit must report, and uses none of its hooks. It is told every call and
computes the gradients of each backward pass alone, with `torch.autograd.grad`. For each parameter it keeps the passes
whose gradients `.grad` is the sum of: a pass adds its own, `zero_grad` drops them all, clipping scales them, and a step
of the parameter's optimizer marks them as used. The audit's table and findings follow from these marks; at each step
the sum is also compared with `.grad`. Hypothesis draws which optimizer holds which parameter, and up to 25 calls.
"""

import pytest
import torch
from audited import cells, found
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from common.gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")

ONE = st.integers(0, 2)  # a network, or an optimizer
CALLS = st.one_of(
    st.tuples(st.just("backward"), ONE, ONE, st.none() | ONE, st.none()),
    st.tuples(st.just("backward"), st.just(0), st.just(2), st.none() | ONE, st.sets(ONE, min_size=1)),
    st.tuples(st.just("backward"), st.just(0), st.just(2), st.none(), st.none()),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("step"), ONE),
    st.tuples(st.just("zero"), ONE, st.booleans()),
    st.tuples(st.just("zero network"), ONE, st.booleans()),
    st.tuples(st.just("freeze"), ONE, st.booleans()),
    st.tuples(st.just("clip"), ONE),
)
# Which optimizer holds each of the six parameters, two of each network; None: no optimizer does.
OWNERS = st.sampled_from([(0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1), (0, 1, 0, 1, 0, 1)]) | st.tuples(
    *[st.none() | ONE] * 6
)


class ByHand:
    """The account of one run, kept from the calls themselves and from each pass computed alone."""

    def __init__(self, networks, owners):
        self.networks, self.owners = networks, owners  # owners: parameter -> index of its optimizer, or None
        self.parameters = [parameter for network in networks for parameter in network.parameters()]
        self.held = {p: {} for p in self.parameters}  # pass -> its part of the gradient
        self.reached, self.used, self.stale = [], [], set()
        self.last_step, self.asked, self.fed = {}, set(), set()

    def backward(self, loss, inputs):
        wanted = [p for p in self.parameters if p.requires_grad and (inputs is None or p in inputs)]
        alone = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        parts = {p: part for p, part in zip(wanted, alone, strict=True) if part is not None}
        for p, part in parts.items():
            self.held[p][len(self.reached)] = part
        self.reached.append(set(parts))
        self.used.append({})

    def step(self, optimizer):
        for p in self.parameters:
            if self.owners[p] != optimizer:
                continue
            total = sum(self.held[p].values()) if self.held[p] else torch.zeros_like(p)
            gradient = p.grad if p.grad is not None else torch.zeros_like(p)
            torch.testing.assert_close(gradient, total, rtol=1e-12, atol=1e-12)
            if p.requires_grad:
                self.asked.add(p)
            for number in self.held[p]:
                self.fed.add(p)
                self.used[number][p] = optimizer
                if number < self.last_step.get(optimizer, 0):
                    self.stale.add((optimizer, p))
        self.last_step[optimizer] = len(self.reached)

    def clip(self, parameters, factor):
        for p in parameters:
            self.held[p] = {number: part * factor for number, part in self.held[p].items()}

    def findings(self):
        of = [set(network.parameters()) for network in self.networks]
        yield from {("mixed", self.moved(n, of)) for n in range(len(self.used)) if self.is_mixed(n, of)}
        for optimizer in {optimizer for optimizer, _ in self.stale}:
            old = {p for by, p in self.stale if by == optimizer}
            yield "stale", tuple(f"n{i}" for i, mine in enumerate(of) if mine & old)
        ever = set().union(*self.reached)
        for i, mine in enumerate(of):
            if mine & (self.asked - self.fed):
                yield "unreached", (f"n{i}",)
            orphans = {p for p in mine if self.owners[p] is None and (p.requires_grad or p in ever)}
            if orphans and set(self.owners.values()) != {None}:
                yield "ownerless", (f"n{i}",)
            if any(mine & (reached - used.keys()) for reached, used in zip(self.reached, self.used, strict=True)):
                yield "wasted", (f"n{i}",)

    def moved(self, number, of):
        return tuple(f"n{i}" for i, mine in enumerate(of) if mine & self.used[number].keys())

    def is_mixed(self, number, of):
        """Whether two parameters moved by this pass are linked by no chain of one network or one optimizer."""
        used = self.used[number]
        if not used:
            return False
        linked = {next(iter(used))}
        while True:
            more = {
                p for p in used for q in linked if used[p] == used[q] or any(p in mine and q in mine for mine in of)
            }
            if more <= linked:
                return linked != set(used)
            linked |= more


@settings(max_examples=100, deadline=None)
@given(owners=OWNERS, calls=st.lists(CALLS, min_size=5, max_size=25))
def test_any_order_of_calls_against_an_account_by_hand(owners, calls):
    """A chain of three networks, any stretch of it, cut by detach() or not, under any distribution of optimizers."""
    torch.manual_seed(0)
    networks = [nn.Sequential(nn.Linear(2, 2), nn.Tanh()).double() for _ in range(3)]
    parameters = [parameter for network in networks for parameter in network.parameters()]
    owner = dict(zip(parameters, owners, strict=True))
    optimizers = {i: torch.optim.SGD([p for p in parameters if owner[p] == i], lr=0.01) for i in set(owners) - {None}}
    by_hand = ByHand(networks, owner)
    with GradientAudit(**{f"n{i}": network for i, network in enumerate(networks)}) as audit:
        for what, target, *rest in calls:
            if what == "backward":
                end, cut, inputs = rest
                hidden = torch.randn(3, 2, dtype=torch.double)
                for i in range(min(target, end), max(target, end) + 1):
                    hidden = networks[i](hidden.detach() if i == cut else hidden)
                if not hidden.requires_grad:
                    continue
                loss = hidden.square().sum()
                chosen = inputs and [p for i in inputs for p in networks[i].parameters() if p.requires_grad]
                if inputs is not None and not chosen:
                    continue
                by_hand.backward(loss, chosen and set(chosen))
                loss.backward(inputs=chosen)
            elif what == "step" and target in optimizers:
                by_hand.step(target)
                optimizers[target].step()
            elif what in ("zero", "zero network"):
                if what == "zero" and target not in optimizers:
                    continue
                mine = (
                    [p for p in parameters if owner[p] == target] if what == "zero" else networks[target].parameters()
                )
                (optimizers if what == "zero" else networks)[target].zero_grad(*rest)
                for p in mine:
                    by_hand.held[p].clear()
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
    assert found(audit) == set(by_hand.findings())
    assert not any(p.raised for p in audit.passes)
