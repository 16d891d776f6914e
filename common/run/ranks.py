"""Data-parallel training under torchrun, where each process is a rank."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer


class LostRank(Exception):
    """Another process of the run has ended, so this one cannot continue. The message is one line."""


class Ranks:
    """The processes of a run, seen from one of them; with a single process, no method has an effect.

    Every rank holds all weights and computes on its slice of the global batch. A loss is a mean over samples and no
    layer mixes samples, so the gradient of the global batch is the sum of the ranks' own, each weighted by the rank's
    fraction of the batch: `average_gradients`, a hook on each optimizer, puts it in place by one all-reduce.
    """

    def __init__(self, batch_size: int):
        """Find the other processes if torchrun has started this one, and wait until all are connected."""
        if dist.is_torchelastic_launched() and not dist.is_initialized():
            with lost_ranks():
                dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
            meet()  # else, if one ended now with an error in its options, the others would wait for it to connect
        self.rank, self.count = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.leads = self.rank == 0  # only rank 0 writes and prints
        self.batch_size = batch_size
        first, last = (rank * batch_size // self.count for rank in (self.rank, self.rank + 1))
        self.rows = slice(first, last)
        self.part = (last - first) / batch_size

    def share(self, whole: Tensor) -> Tensor:
        """Return this rank's rows of a tensor for the global batch, (batch_size, ...)."""
        return whole if self.count == 1 else whole[self.rows]

    def whole(self, share: Tensor) -> Tensor:
        """Return all ranks' rows of the batch, (batch_size, ...), given this rank's rows, detached; inverts `share`."""
        if self.count == 1:
            return share
        whole = share.new_zeros(self.batch_size, *share.shape[1:])
        whole[self.rows] = share
        with lost_ranks():
            dist.all_reduce(whole)
        return whole

    def average_gradients(self, optimizer: Optimizer, *_: object) -> None:
        """Replace the gradients of `optimizer` by those of the global batch; a step pre-hook."""
        if self.count == 1:
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = self.mean(torch.cat([gradient.flatten() for gradient in gradients]))
        for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(piece.view_as(gradient))

    def mean(self, values: Tensor) -> Tensor:
        """Return means over the global batch, given means over this rank's rows; may overwrite `values`."""
        if self.count > 1:
            values.mul_(self.part)
            with lost_ranks():
                dist.all_reduce(values)
        return values

    def gather(self, value: object) -> list:
        """Return the `value` of every rank."""
        values = [value] * self.count
        if self.count > 1:
            with lost_ranks():
                dist.all_gather_object(values, value)
        return values

    def broadcast_weights(self, networks: Iterable[nn.Module]) -> None:
        """Give every rank the weights of rank 0: one seed need not give the same bits on two processor types."""
        if self.count > 1:
            with lost_ranks():
                for network in networks:
                    for tensor in network.state_dict().values():
                        dist.broadcast(tensor, 0)


def meet() -> None:
    """Wait for all processes of the run, if there are several; raises LostRank if one has ended."""
    if dist.is_initialized():
        with lost_ranks():
            dist.all_reduce(torch.zeros(1))


@contextmanager
def lost_ranks() -> Iterator[None]:
    """Raise LostRank if a collective operation in the block fails."""
    try:
        yield
    except RuntimeError as error:
        raise LostRank(f"another process of this run has ended, so this one ends too ({error})") from error


def first_to_report() -> bool:
    """Return whether this process is the first of its run to report an error, which is then printed once."""
    if not dist.is_torchelastic_launched():
        return True
    try:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(address, port, is_master=False, timeout=timedelta(seconds=10))
        return store.add(f"errors/{os.environ['TORCHELASTIC_RESTART_COUNT']}", 1) == 1
    except RuntimeError:  # torchrun itself has ended; better printed twice than not at all
        return True


def close_process_group() -> None:
    """Close the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()
