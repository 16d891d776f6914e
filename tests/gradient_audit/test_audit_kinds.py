"""Each kind of finding, in process: the mistake gets it, at its line, and the right form beside it gets none."""

import json
from contextlib import nullcontext

import pytest
import torch
from audited import batch, cells, found, line_of, make_all, make_networks
from torch import nn

from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")


def audited(step, *parts, steps=3):
    generator, discriminator, *_ = parts = parts or make_all(torch.optim.SGD)
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for number in range(steps):
            step(*parts, *batch(number))
    return audit


def errors(audit):
    return {(finding.kind, finding.networks) for finding in audit.findings if finding.severity == "error"}


# One gradient stepped on twice.


def test_one_gradient_under_two_optimizers_is_stepped_on_twice_unless_it_is_cleared():
    generator, discriminator, optimizer_g, optimizer_d = make_all(torch.optim.SGD)
    both = torch.optim.SGD([*generator.parameters(), *discriminator.parameters()], lr=0.1)

    def step(clears, real, z):
        optimizer_d.zero_grad()
        discriminator(real).mean().backward()
        optimizer_d.step()
        if clears:
            both.zero_grad()
        discriminator(generator(z)).mean().backward()
        both.step()
        optimizer_g.zero_grad()

    for clears in (False, True):
        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            for number in range(3):
                step(clears, *batch(number))
        assert errors(audit) == (set() if clears else {("twice", ("discriminator",))})


def test_a_parameter_that_an_optimizer_holds_twice_is_stepped_twice():
    shared = nn.Linear(2, 2)
    first, second = nn.Sequential(nn.Linear(2, 2), shared), nn.Sequential(nn.Linear(2, 2), shared)
    parameters = [*first.parameters(), *second.parameters()]
    for chosen in (parameters, list(dict.fromkeys(parameters))):
        with pytest.warns(UserWarning, match="duplicate") if chosen is parameters else nullcontext():
            optimizer = torch.optim.SGD(chosen, lr=0.1)
        with GradientAudit(first=first, second=second) as audit:
            (first(torch.ones(1, 2)) + second(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        assert errors(audit) == ({("twice", ("first", "second"))} if chosen is parameters else set())


class Wrapper(torch.optim.Optimizer):
    """An optimizer that steps another one, as SAM and Lookahead do."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})

    def step(self):
        self.inner.step()


def test_an_optimizer_inside_another_steps_once():
    generator, _, optimizer, _ = make_all(torch.optim.SGD)
    outer = Wrapper(optimizer)
    with GradientAudit(generator=generator) as audit:
        for _ in range(3):
            outer.zero_grad()
            generator(batch()[1]).sum().backward()
            outer.step()
    assert not audit.findings


# An optimizer that never steps.


def never_stepped(generator, discriminator, optimizer_g, optimizer_d, real, z):
    optimizer_d.zero_grad()
    discriminator(real).mean().backward()
    optimizer_g.zero_grad()
    discriminator(generator(z)).mean().backward(inputs=list(generator.parameters()))
    optimizer_g.step()


def test_an_optimizer_that_never_steps_is_idle():
    audit = audited(never_stepped)
    assert errors(audit) == {("idle", ("discriminator",))}
    assert audit.findings[0].line == line_of(never_stepped, "discriminator(real)")
    assert [finding.kind for finding in audit.findings] == ["idle"]  # its gradients are not told again as waste


def test_an_optimizer_that_accumulates_over_the_audit_is_not_idle():
    def accumulates(generator, discriminator, optimizer_g, optimizer_d, real, z):
        discriminator(real).mean().backward()  # steps after more batches than the audit sees
        optimizer_g.zero_grad()
        discriminator(generator(z)).mean().backward(inputs=list(generator.parameters()))
        optimizer_g.step()

    assert not errors(audited(accumulates))


# Terms of a loss.


def step_with(second_term):
    """A step of G on a sum of two terms; D is only a judge."""

    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        fake = generator(z)
        loss = (fake - real).square().mean() + second_term(discriminator, fake)
        optimizer_g.zero_grad()
        loss.backward(inputs=list(generator.parameters()))
        optimizer_g.step()

    return step


def penalty_without_graph(discriminator, fake):
    (slope,) = torch.autograd.grad(discriminator(fake).sum(), fake, retain_graph=True)
    return slope.square().mean()


def under_no_grad(discriminator, fake):
    with torch.no_grad():
        return discriminator(fake).mean()


DEAD = {
    "detached output": lambda discriminator, fake: 0.1 * discriminator(fake).mean().detach(),
    "number": lambda discriminator, fake: discriminator(fake).mean().item(),
    "no_grad": under_no_grad,
    "penalty without create_graph": penalty_without_graph,
    "detached input": lambda discriminator, fake: -discriminator(fake.detach()).mean(),
}
ALIVE = {
    "loss": lambda discriminator, fake: 0.1 * discriminator(fake).mean(),
    "the same number each time": lambda discriminator, fake: 1e-3,
    "zero": lambda discriminator, fake: torch.zeros(()),
    "entropy of a teacher that is not trained": lambda discriminator, fake: (
        discriminator(torch.randn(6, 4)).detach().sum()
    ),
    "loss less a constant": lambda discriminator, fake: (discriminator(fake).mean() - 3) / 2,
}


@pytest.mark.parametrize("term", DEAD)
def test_a_term_that_moves_nothing_is_dead(term):
    audit = audited(step_with(DEAD[term]))
    assert errors(audit) == {("dead", ("generator",))}
    step = step_with(DEAD[term])
    assert audit.findings[0].line == line_of(step, "loss.backward")
    rows = [line for line in str(audit).splitlines() if line.startswith("|   + ")]
    assert len(rows) == 2
    assert "(dead)" in rows[1] and "(dead)" not in rows[0]


@pytest.mark.parametrize("term", ALIVE)
def test_a_term_that_moves_something_or_is_a_constant_is_not_dead(term):
    assert not errors(audited(step_with(ALIVE[term])))


def test_terms_are_shown_by_their_own_expressions():
    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        loss = discriminator(real).mean() - 2 * generator(z).mean()
        loss.backward()
        optimizer_g.step()

    audit = audited(step)
    assert cells(audit) == [("used", "wasted")] * 3
    first, second = audit.passes[0].terms
    assert (first.place.code, second.place.code) == ("discriminator(real).mean()", "2 * generator(z).mean()")
    assert (first.cells, second.cells) == (
        {"generator": "-", "discriminator": "wasted"},
        {"generator": "used", "discriminator": "-"},
    )


def test_a_pass_that_reaches_no_parameter_is_dead_but_not_one_for_an_optimizer_of_latents():
    generator, _ = make_networks()
    generator.requires_grad_(False)
    z = torch.randn(2, 3, requires_grad=True)
    optimizer = torch.optim.SGD([z], lr=0.1)
    for held in (True, False):
        if not held:
            optimizer.param_groups.clear()
        with GradientAudit(generator=generator) as audit:
            generator(z).sum().backward()
        assert errors(audit) == (set() if held else {("dead", ())})


def test_independent_losses_in_one_sum_are_no_question():
    """And stay so after the passes that are watched in detail."""

    def step(a, b, optimizer_a, optimizer_b, of_b, of_a):
        for optimizer in (optimizer_a, optimizer_b):
            optimizer.zero_grad()
        (a(of_a).mean() + b(of_b).mean()).backward()
        optimizer_a.step()
        optimizer_b.step()

    assert not audited(step, steps=20).findings


# Graphs that no pass came through.


def test_a_forward_pass_whose_graph_is_dropped_is_unused():
    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        loss = discriminator(real).mean()
        loss = discriminator(generator(z)).mean()
        optimizer_g.zero_grad()
        loss.backward(inputs=list(generator.parameters()))
        optimizer_g.step()

    (finding,) = audited(step).findings
    assert (finding.kind, finding.severity, finding.networks) == ("unused", "question", ("discriminator",))
    assert finding.line == line_of(step, "discriminator(real)")


@pytest.mark.parametrize("added", [True, False])
def test_a_penalty_that_is_not_added_is_unused(added):
    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        real = real.requires_grad_()
        (slope,) = torch.autograd.grad(discriminator(real).sum(), iter([real]), create_graph=True)
        loss = discriminator(real).mean() + (slope.square().mean() if added else 0)
        optimizer_d.zero_grad()
        loss.backward()
        optimizer_d.step()

    audit = audited(step)
    assert found(audit) == (set() if added else {("unused", ("discriminator",))})
    reads = [event for event in audit.events if event.kind == "grad"]
    assert [event.cells for event in reads] == [{"generator": "-", "discriminator": "read"}] * 3
    assert all(event.create_graph for event in reads)
    assert str(audit).count("(create_graph)") == 1


# A network of a loss.


def test_a_loss_network_that_is_not_frozen_is_waste_and_a_forgotten_network_is_an_error():
    def step(generator, judge, optimizer_g, _, real, z):
        optimizer_g.zero_grad()
        judge(generator(z)).mean().backward()
        optimizer_g.step()

    generator, judge, optimizer_g, of_judge = make_all(torch.optim.SGD)
    of_judge.param_groups.clear()
    audit = audited(step, generator, judge, optimizer_g, None)
    (finding,) = audit.findings
    assert (finding.kind, finding.severity, finding.networks) == ("unfrozen", "waste", ("discriminator",))
    assert finding.line == line_of(step, "judge(generator(z))")
    assert "Freeze it" in finding.cure

    generator, judge, optimizer_g, optimizer_d = make_all(torch.optim.SGD)
    optimizer_g.param_groups.clear()  # G is an encoder that nobody trains
    audit = audited(lambda g, d, _, opt, real, z: step(g, d, opt, None, real, z), generator, judge, None, optimizer_d)
    assert errors(audit) == {("ownerless", ("generator",))}


def test_steps_by_hand_are_steps():
    generator, _ = make_networks()
    with GradientAudit(generator=generator) as audit:
        for _ in range(3):
            generator.zero_grad()
            generator(batch()[1]).sum().backward()
            for parameter in generator.parameters():
                parameter.data.add_(parameter.grad, alpha=-0.1)
    assert cells(audit) == [("used",)] * 3
    assert not audit.findings
    assert [event.kind for event in audit.events] == ["zero_grad", "forward", "backward", "step"] * 3


def test_data_is_plain_and_in_order():
    audit = audited(never_stepped, steps=2)
    data = json.loads(json.dumps(audit.data()))
    assert [network["name"] for network in data["networks"]] == ["generator", "discriminator"]
    assert [(optimizer["networks"], optimizer["steps"]) for optimizer in data["optimizers"]] == [
        (["generator"], 2),
        (["discriminator"], 0),
    ]
    kinds = ["zero_grad", "forward", "backward", "zero_grad", "forward", "forward", "backward", "step"]
    assert [event["kind"] for event in data["events"]] == kinds * 2
    assert data["events"][2]["place"]["code"] == "discriminator(real).mean().backward()"
    assert data["severity"] == "error"
    assert data["findings"][0]["kind"] == "idle"
    assert data["findings"][0]["places"][0]["line"] == int(audit.findings[0].line.split(":")[1])


def test_autograd_grad_goes_through_a_frozen_network_and_not_beyond_the_tensors_asked_for():
    encoder, last, frozen = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1).requires_grad_(False)
    with GradientAudit(encoder=encoder, last=last, frozen=frozen) as audit:
        torch.autograd.grad(frozen(last(encoder(torch.ones(1, 2)))).sum(), last.weight)
    (event,) = (event for event in audit.events if event.kind == "grad")
    assert event.cells == {"encoder": "-", "last": "read", "frozen": "read"}
