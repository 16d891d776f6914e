"""Every update order gets its table, and trains under audit to the same bits, also compiled."""

from contextlib import nullcontext

import pytest
import torch
from audited import D_ONLY, G_ONLY, audit_of, batch, cells, found, make_all, table
from helpers import make_images, module_of, path_of
from processes import RUN_AUDIT, forked

from common.models import mlp
from gradient_audit import GradientAudit
from scripts import gan_detach

pytestmark = pytest.mark.usefixtures("few_objects")

TABLES = {
    "detach": [D_ONLY, G_ONLY],
    "generator_first": [G_ONLY, D_ONLY],
    "one_stage": [D_ONLY, G_ONLY],
    "resample": [D_ONLY, G_ONLY],
    "retain_graph": [("wasted", "used"), ("used", "wasted")],
    "simultaneous": [D_ONLY, G_ONLY],
}


@pytest.mark.numerics
@pytest.mark.parametrize("order", TABLES)
def test_an_update_order_has_its_table_and_gives_the_same_bits_as_without_audit(order):
    train_step = module_of(f"gan_{order}").train_step
    states = []
    for audited in (False, True):
        generator, discriminator, *optimizers = parts = make_all()
        torch.manual_seed(1)
        if audited:
            audit = audit_of(train_step, *parts)
        else:
            for step in range(3):
                train_step(*parts, *batch(step))
        weights = [*generator.parameters(), *discriminator.parameters()]
        moments = [value for opt in optimizers for state in opt.state.values() for value in state.values()]
        gradients = [parameter.grad for parameter in weights if parameter.grad is not None]
        states.append([*weights, *moments, *gradients, torch.get_rng_state()])
    assert len(states[0]) == len(states[1])
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))

    assert cells(audit) == TABLES[order] * 3
    assert [list(p.cells) for p in audit.passes] == [["generator", "discriminator"]] * 6
    wasteful = {("wasted", ("generator",)), ("wasted", ("discriminator",))}
    assert found(audit) == (wasteful if order == "retain_graph" else set())
    audit.check()


MLP = "--model mlp --image-size 8"
WHOLE = {
    "gan_detach": MLP,
    "gan_standalone": "--dataset images --image-size 28",
    "gan_r3": f"{MLP} --penalty-every 1",
    "gan_wgan_gp": MLP,
    "gan_conditional": MLP,
    "cyclegan": "--image-size 12 --width 2 --blocks 1",
}


@pytest.mark.parametrize("script", WHOLE)
def test_the_scripts_as_wholes_are_right_waste_nothing_and_leave_their_runs(script, tmp_path):
    make_images(tmp_path / "images", 4, 28)
    (tmp_path / "scratch").mkdir()
    options = f"{WHOLE[script]} --batch-size 4" + " --device cpu --runs-dir runs" * (script != "gan_standalone")
    done = forked(RUN_AUDIT, path_of(script), *options.split(), folder=tmp_path, TMPDIR=str(tmp_path / "scratch"))
    assert "Nothing wrong, nothing wasted." in done.stdout
    assert "Stopped after 3 steps of every optimizer." in done.stdout
    assert [path.name for path in (*tmp_path.glob("runs"), *tmp_path.glob("scratch/tmp*"))] == ["runs"]
    names = ["generator", "discriminator"]  # as main calls them
    assert table(done, path_of(script))[0] == names or script == "cyclegan"


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
