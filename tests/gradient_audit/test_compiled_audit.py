"""Under the audit compiled networks train as they do without, and its table is that of networks not compiled."""

from contextlib import nullcontext

import pytest
import torch
from audited import D_ONLY, G_ONLY, cells

from common.models import mlp
from gradient_audit import GradientAudit
from scripts import gan_detach

SHAPE, Z_DIM = (1, 8, 8), 4


def train(form, audited):
    """Return the weights after three steps, and the audit."""
    torch.manual_seed(0)
    networks = mlp(SHAPE, Z_DIM)
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in networks]
    step, called = gan_detach.train_step, networks
    if form == "wrapped":
        called = [torch.compile(network, backend="eager", fullgraph=True) for network in networks]
    elif form == "in place":
        for network in networks:
            network.compile(backend="eager")
    elif form == "step":
        step = torch.compile(step, backend="eager")
    elif form == "optimizers":
        for optimizer in optimizers:
            optimizer.step = torch.compile(optimizer.step, backend="eager")
    audit = GradientAudit(generator=called[0], discriminator=called[1])
    with audit if audited else nullcontext():
        for _ in range(3):
            step(*called, *optimizers, torch.randn(5, *SHAPE), torch.randn(5, Z_DIM))
    torch.compiler.reset()
    return torch.cat([p.detach().flatten() for network in networks for p in network.parameters()]), audit


@pytest.mark.parametrize("form", ["wrapped", "in place", "step", "optimizers"])
def test_compiled_networks_steps_and_optimizers_under_audit(form):
    weights, audit = train(form, audited=True)
    assert cells(audit) == 3 * [D_ONLY, G_ONLY]
    assert not audit.findings
    assert weights.equal(train(form, audited=False)[0])
