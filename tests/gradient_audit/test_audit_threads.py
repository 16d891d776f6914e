"""An audit watches the thread that entered it, is the only one of its process, and its end is linear in its steps."""

import threading

import pytest
import torch
from audited import audit_of, batch, make_all, textbook_detach
from torch import nn

from gradient_audit import GradientAudit


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


def test_a_second_audit_is_refused_in_one_line_and_leaves_the_first_as_it_is():
    generator, discriminator, *_ = parts = make_all()
    before = torch.autograd.backward
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for second in (audit, GradientAudit(other=nn.Linear(1, 1))):
            with pytest.raises(RuntimeError, match="another gradient audit is under way"):
                second.__enter__()
        textbook_detach(*parts, *batch())
    assert len(audit.passes) == 2
    assert torch.autograd.backward is before


def test_an_audit_entered_in_a_thread_of_its_own_watches_that_thread():
    audits = []
    thread = threading.Thread(target=lambda: audits.append(audit_of(textbook_detach)))
    thread.start()
    thread.join()
    assert audits[0].table == audit_of(textbook_detach).table


def test_the_end_of_an_audit_compares_no_pass_with_all_others(monkeypatch):
    """Counted, not timed: places are compared as often as there are passes, times a constant."""
    from gradient_audit.places import Place

    compared, counts = [], []
    for steps in (100, 400):
        generator, discriminator, *_ = parts = make_all(torch.optim.SGD)
        audit = GradientAudit(generator=generator, discriminator=discriminator)
        with audit:
            for step in range(steps):
                textbook_detach(*parts, *batch(step))
            compared.clear()
            monkeypatch.setattr(Place, "__eq__", lambda a, b: compared.append(1) or tuple.__eq__(a, b))
        counts.append(len(compared))
        monkeypatch.undo()
    assert counts[1] < 8 * counts[0] + 100
