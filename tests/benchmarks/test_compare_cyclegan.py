"""The arrangements that compare_cyclegan.py times make the same update, and cost what its table says."""

import pytest
import torch

from common.cyclegan_models import cyclegan_networks
from scripts.benchmarks.compare_cyclegan import ARRANGEMENTS, BASELINE, Options, contender, main, measure
from scripts.benchmarks.step_cost import forward_flops

TINY = Options(image_size=16, channels=1, width=2, blocks=1, halvings=1, batch_size=2, repeats=1, device="cpu")


@pytest.mark.numerics
def test_all_arrangements_make_the_same_update():
    torch.manual_seed(0)
    networks = [network.double() for network in cyclegan_networks((1, 16, 16), width=2, blocks=1, halvings=1)]
    reals = torch.rand(2, 2, 1, 16, 16, dtype=torch.float64)
    gradients = {}
    for name, train_step in ARRANGEMENTS.items():
        copies, step = contender(train_step, networks)
        torch.manual_seed(0)
        step(*reals)
        # Not the weights: Adam's first step makes a whole one of the noise in a bias before instance norm.
        gradients[name] = torch.cat([p.grad.flatten() for network in copies for p in network.parameters()])
    for found in gradients.values():
        assert (found - gradients[BASELINE]).abs().max() <= 1e-12 * gradients[BASELINE].abs().max()


def test_flops_are_those_of_the_table_and_the_plain_arrangement_alone_wastes_any():
    rows = measure(TINY, torch.device("cpu"))
    discriminator = cyclegan_networks((1, 16, 16), width=2, blocks=1, halvings=1)[2]
    d, _ = forward_flops(discriminator, torch.zeros(2, 1, 16, 16))
    wasted = {name: row["flops"] - row["needed"] for name, row in rows.items()}
    assert wasted == {"plain": 2 * d, "plain, nothing wasted": 0, "cyclegan.py": 0}
    assert {name: row["wasted"] for name, row in rows.items()} == {
        "plain": "discriminator_a, discriminator_b",
        "plain, nothing wasted": "",
        "cyclegan.py": "",
    }


def test_the_table_has_a_row_for_each(capsys):
    main(TINY)
    printed = capsys.readouterr().out
    assert all(f"\n| {name} " in printed for name in ARRANGEMENTS)
    assert "1.00 (1.00-1.00)" in printed
