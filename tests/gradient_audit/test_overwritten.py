"""The culprit of an in-place error: the tensor, who read it, who wrote it, which pass wanted it back, and the cure."""

import pytest
import torch
from audited import D_ONLY, audit_of, batch, cells, line_of, make_networks, textbook_detach
from torch import nn

from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")


FORMS = {
    "foreach": lambda parameters: torch.optim.Adam(parameters, lr=0.1, foreach=True),
    "for-loop": lambda parameters: torch.optim.SGD(parameters, lr=0.1, foreach=False),
}


def parts_of(form="for-loop"):
    networks = make_networks()
    return *networks, *(FORMS[form](network.parameters()) for network in networks)


def blamed(step, *parts):
    """The finding and the facts of a step that raises the in-place error."""
    error = pytest.raises(RuntimeError, match="modified by an inplace operation")
    with error, GradientAudit(generator=parts[0], discriminator=parts[1]) as audit:
        step(*parts, *batch())
    finding = audit.findings[0]
    assert (finding.kind, finding.severity, audit.severity) == ("overwritten", "error", "error")
    assert str(audit).startswith("Wrong. 1 error")
    return finding, dict(finding.facts)


def d_steps_between(generator, discriminator, optimizer_g, optimizer_d, real, z):
    verdict = discriminator(generator(z))
    verdict.mean().backward(retain_graph=True)
    optimizer_d.step()
    verdict.square().mean().backward()


@pytest.mark.parametrize("form", FORMS)
def test_a_step_of_d_between_two_passes_is_named(form):
    """Where PyTorch raises no error: the museum's fused_step.py and step_through_data_between.py."""
    finding, facts = blamed(d_steps_between, *parts_of(form))
    texts = "optimizer_d.step()", "verdict = ", "verdict.square()"
    assert finding.lines == tuple(line_of(d_steps_between, text) for text in texts)
    assert finding.networks == ("discriminator",)
    assert "PyTorch gives a wrong gradient and no error" not in facts["why"]
    assert facts["tensor"] == "`discriminator.2.weight`"
    assert "optimizer_d.step()" in facts["written by"]
    assert "discriminator(generator(" in facts["read by"]
    assert finding.cure.startswith("Compute the forward pass again after the step")


def test_where_several_tensors_fit_all_are_named():
    """Two layers of one shape: the message could speak of either."""
    generator, _, optimizer_g, _ = parts_of()
    twins = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(twins.parameters(), lr=0.1)
    _, facts = blamed(d_steps_between, generator, twins, optimizer_g, optimizer)
    assert facts["tensor"] == "`discriminator.2.weight` and `discriminator.0.weight`"


@pytest.mark.parametrize("form", FORMS)
def test_the_usual_order_of_steps_raises_nothing(form):
    assert cells(audit_of(textbook_detach, *parts_of(form))) == [D_ONLY, ("used", "wasted")] * 3


def test_a_graph_that_has_raised_raises_again():
    """Looking for the culprit leaves the check of the tensors as it was."""
    generator, discriminator, _, optimizer_d = parts_of()
    with GradientAudit(generator=generator, discriminator=discriminator):
        verdict = discriminator(generator(batch()[1]))
        verdict.mean().backward(retain_graph=True)
        optimizer_d.step()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                verdict.square().mean().backward(retain_graph=True)
