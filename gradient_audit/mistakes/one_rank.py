"""A process group of this process alone, for DistributedDataParallel."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

# Old groups are kept. If a DistributedDataParallel is the last to hold a group, freeing it deadlocks: it waits for the
# group's threads while it holds the interpreter's lock, and they wait for the lock.
GROUPS: list[dist.ProcessGroup] = []


@contextmanager
def one_rank() -> Iterator[None]:
    """Make this process a process group of its own, over gloo."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    GROUPS.append(dist.group.WORLD)
    try:
        yield
    finally:
        dist.destroy_process_group()


def record_average(averaged: list, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Record the gradients that DDP averages; with one process the average is the gradient itself."""
    averaged.append(bucket.buffer().tolist())
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done
