"""Copied steps around DistributedDataParallel: two processes with half a batch each against one with all of it."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from helpers import ORDERS, module_of
from processes import ended, logs, start_ranks
from reference import step
from test_any_networks import images, networks, step_of, trained
from torch.nn.parallel import DistributedDataParallel

BATCH = 4


def train(order, train_step, wrap=lambda network: network, rows=slice(None)):
    pair = [wrap(network.double()) for network in networks(images)]
    return torch.cat(trained(order, train_step, pair, (1, 8, 8), batch_size=BATCH, rows=rows))


def train_every_order(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = slice(rank * BATCH // 2, (rank + 1) * BATCH // 2)
    weights = {order: train(order, step_of(order), DistributedDataParallel, rows) for order in ORDERS}
    torch.save(weights, folder / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """The weights that each of two processes ends with, by update order."""
    folder = tmp_path_factory.mktemp("ranks")
    assert ended(start_ranks(2, folder, train_every_order, folder)) == [0, 0], logs(folder, 2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("order", sorted(set(ORDERS) - {"retain_graph"}))
def test_two_processes_end_with_the_same_weights_which_are_those_of_one(order, ranks):
    first, second = (rank[order] for rank in ranks)
    assert first.equal(second)
    assert (first - train(order, partial(step, order))).abs().max() <= 1e-12


def test_retain_graph_drifts_apart_as_its_docstring_says(ranks):
    """D's backward pass goes on through G, which DistributedDataParallel takes for G's: G's own is not averaged."""
    first, second = (rank["retain_graph"] for rank in ranks)
    assert (first - second).abs().max() > 1e-6
    assert "DistributedDataParallel" in module_of("gan_retain_graph").__doc__
