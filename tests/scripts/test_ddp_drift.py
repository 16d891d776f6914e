"""The pitfall ddp-retain-graph with two processes: their weights drift apart, and not where D sees detached fakes."""

import json

import pytest
import torch
import torch.distributed as dist
from processes import ended, logs, start_ranks
from torch.nn.parallel import DistributedDataParallel

from gradient_audit.mistakes.one_weight import one_weight_gan


def step(folder):
    """One update of G in each of the two ways, with noise of 1 + rank; writes G's weights into a file of `folder`."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
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
    assert ended(start_ranks(2, tmp_path, step, tmp_path)) == [0, 0], logs(tmp_path, 2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    # By hand: G's gradients are -0.91 for the noise 1 and -0.84 for 2, and -0.875 on average.
    assert first == pytest.approx([1.41, 1.375])
    assert second == pytest.approx([1.34, 1.375])
