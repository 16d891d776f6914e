"""Copied steps around DistributedDataParallel: two processes with half a batch each against one with all of it."""

import pytest
import torch
import torch.distributed as dist
from helpers import ORDERS, module_of
from processes import ended, logs, start_ranks
from reference import step
from test_any_networks import images, networks, sgd
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, Z = 3, 4, 4


def train(order, train_step, pair, rows):
    """Train on these rows of data that are the same for all; return G's and D's weights, flat."""
    optimizers = [sgd(network.parameters()) for network in pair]
    draws = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        real = torch.rand(BATCH, 1, 8, 8, generator=draws, dtype=torch.float64) * 2 - 1
        z = torch.randn(BATCH, Z, generator=draws, dtype=torch.float64)
        drawn = {}  # what the other orders do without
        if order == "resample":
            drawn["z_g"] = torch.randn(BATCH, Z, generator=draws, dtype=torch.float64)[rows]
        if order == "wgan_gp":
            drawn["mix"] = torch.rand(BATCH, generator=draws, dtype=torch.float64)[rows]
        train_step(*pair, *optimizers, real[rows], z[rows], **drawn)
    return [torch.cat([p.detach().flatten() for p in network.parameters()]) for network in pair]


def train_every_order(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = slice(rank * BATCH // 2, (rank + 1) * BATCH // 2)
    weights = {}
    for order in ORDERS:
        pair = [DistributedDataParallel(network.double()) for network in networks(images)]
        weights[order] = train(order, module_of(f"gan_{order}").train_step, pair, rows)
    torch.save(weights, folder / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two processes ends with, by update order."""
    folder = tmp_path_factory.mktemp("ranks")
    assert ended(start_ranks(2, folder, train_every_order, folder)) == [0, 0], logs(folder, 2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def apart(some, others):
    return max((a - b).abs().max().item() for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize("order", sorted(set(ORDERS) - {"retain_graph"}))
def test_two_processes_end_with_the_same_weights_which_are_those_of_one(order, ranks):
    pair = [network.double() for network in networks(images)]

    def reference(*given, **drawn):
        return step(order, *given, *drawn.values())

    expected = train(order, reference, pair, slice(None))
    first, second = (rank[order] for rank in ranks)
    assert apart(first, second) == 0
    assert apart(first, expected) <= 1e-12


def test_retain_graph_drifts_apart_as_its_docstring_says(ranks):
    """D's backward pass goes on through G, which DistributedDataParallel takes for G's: G's own is not averaged."""
    assert apart(*(rank["retain_graph"] for rank in ranks)) > 1e-6
    assert "DistributedDataParallel" in module_of("gan_retain_graph").__doc__
