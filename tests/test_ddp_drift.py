"""The pitfall ddp-retain-graph with two processes: their weights drift apart, and not where D sees detached fakes."""

import json

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common.pitfalls import one_weight_gan


def step(rank, folder):
    """One update of G in each of the two ways by the process `rank`, whose noise is 1 + rank; notes G's weights."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    weights = []
    for detached in (False, True):
        generator, discriminator, optimizer_g, _ = one_weight_gan()
        network = DistributedDataParallel(generator)
        fake = network(torch.full((1, 1), 1.0 + rank))
        d_loss = discriminator(fake.detach() if detached else fake) ** 2
        d_loss.backward(retain_graph=True)
        optimizer_g.zero_grad()
        ((discriminator(fake) - 1) ** 2).backward()
        optimizer_g.step()
        weights.append(generator.weight.item())
    (folder / f"{rank}.json").write_text(json.dumps(weights))
    dist.destroy_process_group()


def test_two_processes_drift_apart_only_where_the_loss_of_d_reaches_g(tmp_path):
    torch.multiprocessing.spawn(step, (tmp_path,), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    # By hand: G's gradients are -0.91 for the noise 1 and -0.84 for 2, and -0.875 on average.
    assert first == pytest.approx([1.41, 1.375])
    assert second == pytest.approx([1.34, 1.375])
