"""What a finding says, and where the museum's bugs have no case: the mistake gets it, the right form beside it none."""

import pytest
import torch
from audited import D_ONLY, audit_of, cells, line_of, textbook_detach
from torch import nn

from gradient_audit import GradientAudit, GradientFlowError
from gradient_audit.judge import judge
from gradient_audit.report import Report
from gradient_audit.rules import rules
from gradient_audit.terms import IDLE_AFTER

pytestmark = pytest.mark.usefixtures("few_objects")


def test_the_report_of_the_textbook_form_which_wastes_the_gradients_of_d():
    audit = audit_of(textbook_detach)
    assert cells(audit) == [D_ONLY, ("used", "wasted")] * 3
    (finding,) = audit.findings
    assert (finding.kind, finding.networks, finding.severity) == ("wasted", ("discriminator",), "waste")
    assert finding.lines == (line_of(textbook_detach, "generator_loss"),)
    assert "all parameters" in finding.text
    assert "3x" in finding.text
    assert "left over" not in finding.cure
    assert "left over" in audit_of(textbook_detach, steps=1).findings[0].cure  # no zero_grad() comes any more

    assert str(audit).startswith("Nothing wrong. 1 wasted computation: ")
    assert audit._repr_markdown_() == str(audit)  # what display(audit) shows in a notebook


def test_what_the_words_of_the_table_mean_stands_above_it_and_no_other_word_is_explained():
    legend, table, _ = audit_of(textbook_detach).table.partition("| backward pass ")
    assert table
    assert [line.partition(":")[0] for line in legend.splitlines()[0].split("; ")] == ["used", "wasted", "-"]


def no_zero_grad(generator, discriminator, optimizer_g, optimizer_d, real, z):
    generator(z).mean().backward()
    optimizer_g.step()


def decoder_alone_then_both(encoder, decoder, optimizer_e, optimizer_d, real, z):
    optimizer_d.zero_grad()
    decoder(real).sum().backward()
    optimizer_d.step()
    optimizer_e.zero_grad()
    optimizer_d.zero_grad()
    decoder(encoder(z)).sum().backward()
    optimizer_e.step()
    optimizer_d.step()


@pytest.mark.parametrize(
    ("train_step", "kind", "severity"),
    [
        (no_zero_grad, "stale", "error"),
        (decoder_alone_then_both, "meant?", "question"),
        (textbook_detach, "wasted", "waste"),
    ],
)
def test_check_raises_for_errors_and_for_what_it_is_asked_for(train_step, kind, severity):
    audit = audit_of(train_step)
    assert [(finding.kind, finding.severity) for finding in audit.findings] == [(kind, severity)]
    for asked, options in {"error": {}, "question": {"questions": True}, "waste": {"waste": True}}.items():
        if severity in ("error", asked):
            with pytest.raises(GradientFlowError, match=rf"\*\*{kind.strip('?')}"):
                audit.check(**options)
        else:
            audit.check(**options)


@pytest.mark.parametrize("train_step", [no_zero_grad, decoder_alone_then_both, textbook_detach])
def test_the_judgement_changes_nothing_that_it_judges_and_its_rules_have_no_order(train_step, monkeypatch):
    trace = audit_of(train_step).trace
    before, judgements = repr(trace), []
    for order in (rules(), rules()[::-1]):
        monkeypatch.setattr("gradient_audit.judge.rules", lambda order=order: order)
        judgements.append(judge(trace))
    assert repr(trace) == before
    found, found_again = judgements
    assert found.findings
    assert {*found.findings} == {*found_again.findings}
    assert [(row.kind, row.cells) for row in found.events] == [(row.kind, row.cells) for row in found_again.events]
    assert str(Report(found)).splitlines()[-1] == str(Report(found_again)).splitlines()[-1]


@pytest.mark.parametrize(("steps", "kinds"), [(IDLE_AFTER - 1, {"wasted"}), (IDLE_AFTER, {"idle"})])
def test_an_optimizer_is_idle_once_another_has_stepped_six_times_on_their_common_loss(steps, kinds):
    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        optimizer_g.zero_grad()
        optimizer_d.zero_grad()
        discriminator(generator(z)).mean().backward()
        optimizer_g.step()

    assert IDLE_AFTER == 6
    assert {finding.kind for finding in audit_of(step, steps=steps).findings} == kinds


# Terms of a loss.


@pytest.mark.parametrize(("count", "kinds"), [(31, {"dead"}), (32, set())])
def test_a_loss_of_31_terms_is_split_and_of_a_longer_one_nothing_is_said_rather_than_half(count, kinds):
    def step(generator, discriminator, optimizer_g, optimizer_d, real, z):
        optimizer_g.zero_grad()
        loss = generator[0].weight.norm().detach()
        for _ in range(count - 1):
            loss = generator(z).square().mean() + loss  # so that whoever splits it meets its terms one by one
        loss.backward()
        optimizer_g.step()

    audit = audit_of(step)
    assert {finding.kind for finding in audit.findings} == kinds
    assert [len(p.terms) for p in audit.passes] == [count if kinds else 0] * 3
    assert str(audit).count("(dead)") == len(kinds)  # in the row of that term


@pytest.mark.parametrize("inputs", [list, iter])
def test_autograd_grad_goes_not_beyond_the_tensors_asked_for(inputs):
    encoder, last = nn.Linear(2, 2), nn.Linear(2, 1)
    with GradientAudit(encoder=encoder, last=last) as audit:
        torch.autograd.grad(last(encoder(torch.ones(1, 2))).sum(), inputs([last.weight]))
    (event,) = (event for event in audit.events if event.kind == "grad")
    assert event.cells == {"encoder": "-", "last": "read"}
