"""Every update order gets its table, and trains under audit to the same bits, also compiled."""

from contextlib import nullcontext

import pytest
import torch
from audited import D_ONLY, G_ONLY, cells, found, table
from helpers import make_images, module_of, path_of
from processes import RUN_AUDIT, forked

from common.models import mlp
from gradient_audit import GradientAudit

pytestmark = pytest.mark.usefixtures("few_objects")

TABLES = {
    "detach": [D_ONLY, G_ONLY],
    "generator_first": [G_ONLY, D_ONLY],
    "one_stage": [D_ONLY, G_ONLY],
    "resample": [D_ONLY, G_ONLY],
    "retain_graph": [("wasted", "used"), ("used", "wasted")],
    "simultaneous": [D_ONLY, G_ONLY],
}


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


def train(order, form, audited):
    """Return the weights after three steps, and the audit."""
    torch.manual_seed(0)
    networks = mlp(SHAPE, Z_DIM)
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in networks]
    step, called = module_of(f"gan_{order}").train_step, networks
    if form == "networks":
        called = [torch.compile(network, backend="eager", fullgraph=True) for network in networks]
    elif form == "networks in place":
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


COMPILED = [("detach", form) for form in ("networks", "networks in place", "step", "optimizers")]


@pytest.mark.numerics
@pytest.mark.parametrize(("order", "form"), [*((order, "as it is") for order in TABLES), *COMPILED])
def test_an_update_order_has_its_table_and_gives_the_same_bits_as_without_audit_also_compiled(order, form):
    weights, audit = train(order, form, audited=True)
    assert cells(audit) == TABLES[order] * 3
    wasteful = {("wasted", ("generator",)), ("wasted", ("discriminator",))}
    assert found(audit) == (wasteful if order == "retain_graph" else set())
    assert weights.equal(train(order, form, audited=False)[0])
