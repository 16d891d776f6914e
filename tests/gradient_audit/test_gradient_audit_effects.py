"""The audit changes no bit of the training, leaves no hook or reference behind, and prints a table."""

import gc
import importlib
import weakref

import pytest
import torch
from audited import (
    D_ONLY,
    UPDATE_ORDERS,
    audit_of,
    batch,
    cells,
    line_of,
    make_all,
    textbook_detach,
)
from helpers import module_of

from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")

torch_optimizer = importlib.import_module("torch.optim.optimizer")


@pytest.mark.numerics
@pytest.mark.parametrize("order", UPDATE_ORDERS)
def test_a_step_under_audit_gives_the_same_bits(order):
    """An audit watches: the same operations run in the same order on the same shapes."""
    states = []
    for audited in (False, True):
        generator, discriminator, *optimizers = parts = make_all()
        torch.manual_seed(1)
        train_step = module_of(f"gan_{order}").train_step
        if audited:
            audit_of(train_step, *parts, steps=4)
        else:
            for step in range(4):
                train_step(*parts, *batch(step))
        states.append([*generator.parameters(), *discriminator.parameters()])
        states[-1] += [value for opt in optimizers for state in opt.state.values() for value in state.values()]
        states[-1] += [parameter.grad for parameter in states[-1][:8] if parameter.grad is not None]
        states[-1].append(torch.get_rng_state())
    assert len(states[0]) == len(states[1])
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def traces():
    hooks = torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks
    return torch.autograd.backward, *(dict(hook) for hook in hooks)


@pytest.mark.parametrize("raising", [False, True])
def test_everything_is_left_as_found(raising):
    generator, discriminator, *_ = parts = make_all()
    calls = []
    theirs = torch_optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("step"))
    generator[0].weight.register_post_accumulate_grad_hook(lambda _: calls.append("grad"))
    discriminator[0].weight.requires_grad_(False)
    before, error = traces(), ValueError("mine")
    try:
        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            textbook_detach(*parts, *batch())
            if raising:
                raise error
    except ValueError as caught:
        assert caught is error
    assert traces() == before
    parameters = [*generator.parameters(), *discriminator.parameters()]
    assert [len(parameter._post_accumulate_grad_hooks or ()) for parameter in parameters] == [1] + [0] * 7
    assert [parameter.requires_grad for parameter in parameters] == [True] * 4 + [False] + [True] * 3
    assert cells(audit) == [D_ONLY, ("used", "wasted")]
    assert calls == ["step", "grad", "step"]
    theirs.remove()


def test_a_pass_that_raises_is_in_the_table():
    generator, discriminator, _, optimizer_d = make_all()
    _, z = batch()
    before = traces()
    with pytest.raises(RuntimeError, match="inplace"), GradientAudit(generator=generator, d=discriminator) as audit:
        verdict = discriminator(generator(z))
        verdict.sum().backward(retain_graph=True)
        optimizer_d.step()
        verdict.mean().backward()
    assert [p.raised for p in audit.passes] == [False, True]
    assert "raised" in str(audit)
    assert traces() == before


def test_the_audit_keeps_no_gradient_alive():
    generator, discriminator, *_ = parts = make_all()
    with GradientAudit(generator=generator, discriminator=discriminator):
        textbook_detach(*parts, *batch())
        gradients = [weakref.ref(parameter.grad) for parameter in generator.parameters()]
        generator.zero_grad()
        assert not any(gradient() is not None for gradient in gradients)


def test_the_audit_keeps_no_network_busy_after_the_end():
    generator, discriminator, *_ = parts = make_all()
    audit = audit_of(textbook_detach, *parts)
    parameter = weakref.ref(generator[0].weight)
    audit.networks.clear()
    del generator, discriminator, _, parts
    gc.collect()
    assert parameter() is None


def test_an_audit_used_twice_has_a_new_record_each_time():
    generator, _, *_ = parts = make_all()
    audit = GradientAudit(generator=generator)
    for _ in range(2):
        with audit:
            textbook_detach(*parts, *batch())
        assert cells(audit) == [("-",), ("used",)]


# What is printed.


def test_the_table_names_lines_and_counts_passes_alike():
    audit = audit_of(textbook_detach)
    d_line, g_line = (line_of(textbook_detach, text) for text in ("fake.detach()", "generator_loss"))
    assert [p.where for p in audit.passes] == [d_line, g_line] * 3
    assert audit.passes[1].code == "generator_loss(discriminator(fake)).backward()"
    verdict, _, header, rule, first, second, *rest = str(audit).splitlines()
    assert verdict.startswith("Nothing wrong. 1 waste: ")
    assert [cell.strip() for cell in header.split("|")] == [
        "",
        "backward pass",
        "times",
        "generator",
        "discriminator",
        "",
    ]
    assert set(rule) == set("|- ")
    assert first.split()[1] == f"`{d_line}"
    assert first.split()[-7:] == ["|", "3x", "|", "-", "|", "used", "|"]
    assert second.split()[-7:] == ["|", "3x", "|", "used", "|", "wasted", "|"]
    assert len({len(line) for line in (header, rule, first, second)}) == 1
    legend = "used: an optimizer stepped on the gradient; wasted: the gradient was cleared, or left over without a step"
    assert rest == ["", f"{legend}; -: no gradient.", "", f"- {audit.findings[0]}"]


def test_only_modules_are_networks():
    with pytest.raises(TypeError, match="generator is a int"):
        GradientAudit(generator=3)
