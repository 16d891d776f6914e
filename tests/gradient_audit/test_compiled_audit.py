"""Under the audit compiled networks train as they do without, and its table is that of networks not compiled."""

import copy
from functools import partial

import pytest
import torch
from helpers import module_of
from torch.utils.flop_counter import FlopCounterMode

from common.losses import generator_loss
from common.models import mlp
from common.run.options import GanOptions
from gradient_audit import GradientAudit
from scripts import gan_detach

SHAPE, Z_DIM = (1, 8, 8), 4


def trained(form, audited):
    """Return the weights after three steps, and the audit's rows."""
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

    def train():
        for _ in range(3):
            step(*called, *optimizers, torch.randn(5, *SHAPE), torch.randn(5, Z_DIM))

    audit = GradientAudit(generator=called[0], discriminator=called[1])
    if audited:
        with audit:
            train()
        audit.check(waste=True)
    else:
        train()
    torch.compiler.reset()
    weights = torch.cat([p.detach().flatten() for network in networks for p in network.parameters()])
    return weights, [tuple(p.cells.values()) for p in audit.passes]


@pytest.mark.parametrize("form", ["wrapped", "in place", "step", "optimizers"])
def test_compiled_networks_steps_and_optimizers_under_audit(form):
    weights, rows = trained(form, audited=True)
    assert rows == 3 * [("-", "used"), ("used", "-")]
    assert weights.equal(trained(form, audited=False)[0])
    plain = trained("plain", audited=False)[0]
    torch.testing.assert_close(weights, plain, rtol=1e-4, atol=1e-6)  # float32, and the compiler may round otherwise


@pytest.mark.parametrize("script", ["gan_detach", "gan_resample", "gan_one_stage"])
def test_a_training_script_is_audited_and_compiled_at_once(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # inductor is slow
    module_of(script).main(
        GanOptions(
            model="mlp", image_size=8, z_dim=4, batch_size=4, steps=3, compile=True, audit=True, device="cpu",
            runs_dir=tmp_path,
        )
    )  # fmt: skip
    table = [line.split("|")[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    assert [[cell.strip() for cell in row[:3]] for row in table] == [["3x", "-", "used"], ["3x", "used", "-"]]


def test_a_compiled_discriminator_computes_the_gradients_that_inputs_leaves_out():
    """As the audit's docstring says: the table tells what is kept, and that is the same."""
    generator, discriminator = mlp(SHAPE, Z_DIM)
    flops = {}
    for name, network in (("plain", discriminator), ("compiled", copy.deepcopy(discriminator))):
        if name == "compiled":
            network = torch.compile(network, backend="aot_eager")
        loss = generator_loss(network(generator(torch.randn(5, Z_DIM))))
        with (
            GradientAudit(generator=generator, discriminator=network) as audit,
            FlopCounterMode(display=False) as count,
        ):
            loss.backward(inputs=list(generator.parameters()))
        flops[name] = count.get_total_flops()
        assert [tuple(p.cells.values()) for p in audit.passes] == [("wasted", "-")]  # there is no optimizer
    weights = 2 * 5 * sum(p.numel() for p in discriminator.parameters() if p.ndim == 2)
    assert flops["compiled"] == flops["plain"] + weights
