"""The audit leaves no hook or reference behind, watches one thread, and is the only one of its process."""

import gc
import threading
import weakref
from contextlib import nullcontext

import pytest
import torch
from audited import D_ONLY, audit_of, batch, cells, make_all, make_networks, textbook_detach
from torch import nn
from torch.optim import optimizer as torch_optimizer

from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")


def traces():
    hooks = torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks
    return torch.autograd.backward, *(dict(hook) for hook in hooks)


@pytest.mark.parametrize("raising", [False, True])
def test_everything_is_left_as_found_also_where_a_pass_raises(raising):
    generator, discriminator, *_ = parts = make_all()
    calls = []
    theirs = torch_optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("step"))
    generator[0].weight.register_post_accumulate_grad_hook(lambda _: calls.append("grad"))
    discriminator[0].weight.requires_grad_(False)
    before = traces()
    with (
        pytest.raises(RuntimeError, match="does not require grad") if raising else nullcontext(),
        GradientAudit(generator=generator, discriminator=discriminator) as audit,
    ):
        textbook_detach(*parts, *batch())
        if raising:
            torch.zeros(()).backward()
    assert traces() == before
    parameters = [*generator.parameters(), *discriminator.parameters()]
    assert [len(parameter._post_accumulate_grad_hooks or ()) for parameter in parameters] == [1] + [0] * 7
    assert [parameter.requires_grad for parameter in parameters] == [True] * 4 + [False] + [True] * 3
    assert cells(audit) == [D_ONLY, ("used", "wasted"), *[("-", "-")] * raising]
    assert [p.raised for p in audit.passes] == [False, False, *[True] * raising]
    assert calls == ["step", "grad", "step"]
    theirs.remove()


def test_a_graph_that_outlives_the_audit_has_no_hook_of_it():
    generator, _ = make_networks()
    with GradientAudit(generator=generator) as audit:
        fake = generator(batch()[1])
    (forward,) = audit.events
    fake.sum().backward()
    assert not forward.needed  # a hook on the graph would have noted this pass


def test_the_audit_keeps_no_gradient_alive():
    generator, discriminator, *_ = parts = make_all()
    with GradientAudit(generator=generator, discriminator=discriminator):
        textbook_detach(*parts, *batch())
        gradients = [weakref.ref(parameter.grad) for parameter in generator.parameters()]
        generator.zero_grad()
        assert not any(gradient() is not None for gradient in gradients)


def test_the_audit_keeps_no_network_alive_after_the_end():
    audit = audit_of(textbook_detach)
    parameter = weakref.ref(audit.networks["generator"][0].weight)
    audit.networks.clear()
    gc.collect()
    assert parameter() is None


def test_an_audit_used_twice_has_a_new_record_each_time():
    generator, *_ = parts = make_all()
    audit = GradientAudit(generator=generator)
    for _ in range(2):
        with audit:
            textbook_detach(*parts, *batch())
        assert cells(audit) == [("-",), ("used",)]


def test_only_modules_are_networks():
    with pytest.raises(TypeError, match="generator is a int"):
        GradientAudit(generator=3)


# One thread, one audit.


def train_until(ended, parts):
    number = 0
    while not ended.is_set():
        generator, discriminator, optimizer_g, optimizer_d = parts
        discriminator(generator(batch(number)[1])).mean().backward()  # a mistake: nothing is cleared
        optimizer_g.step()
        optimizer_d.step()
        number += 1


def test_another_thread_that_trains_another_gan_changes_nothing():
    alone = audit_of(textbook_detach, steps=20)
    ended = threading.Event()
    other = threading.Thread(target=train_until, args=(ended, make_all()))
    other.start()
    try:
        for _ in range(5):
            beside = audit_of(textbook_detach, steps=20)
            assert beside.verdict.split(" (")[0] == alone.verdict.split(" (")[0]
            assert beside.table == alone.table
    finally:
        ended.set()
        other.join()


def test_an_audit_entered_in_a_thread_of_its_own_watches_that_thread():
    audits = []
    thread = threading.Thread(target=lambda: audits.append(audit_of(textbook_detach)))
    thread.start()
    thread.join()
    assert audits[0].table == audit_of(textbook_detach).table


def test_a_second_audit_is_refused_and_leaves_the_first_as_it_is():
    generator, discriminator, *_ = parts = make_all()
    before = traces()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for second in (audit, GradientAudit(other=nn.Linear(1, 1))):
            with pytest.raises(RuntimeError, match="another gradient audit is under way"):
                second.__enter__()
        textbook_detach(*parts, *batch())
    assert len(audit.passes) == 2
    assert traces() == before
