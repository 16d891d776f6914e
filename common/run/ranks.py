"""More processes, the same step: what a training run does under torchrun, where each process is a rank."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer


class LostRank(Exception):
    """Another process of the run has ended, and this one cannot go on without it. The message is one line."""


class Ranks:
    """The processes that share a run's batches, as one of them sees them; for a single one nothing here does anything.

    Every rank holds all the weights. `--batch-size` is the global batch; each rank computes on its rows of it, with its
    rows of the noise. `average_gradients`, a hook on each optimizer, replaces the rank's gradients by those of the
    global batch before the step: one all-reduce per optimizer step. A loss is a mean over samples and no layer looks
    across the batch, so the gradient of the global batch is the sum of the ranks' gradients, each times its part of
    the batch, and the ranks may have different numbers of rows. A pool of past fakes needs the fakes of all: `whole`.
    """

    def __init__(self, batch_size: int):
        """Find the other processes if torchrun has started this one; waits until all are there.

        batch_size: of the whole, at least the number of ranks.
        """
        if dist.is_torchelastic_launched() and not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        self.rank, self.count = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.leads = self.rank == 0  # rank 0 alone writes and prints
        self.batch_size = batch_size
        first, last = (rank * batch_size // self.count for rank in (self.rank, self.rank + 1))
        self.rows = slice(first, last)
        self.part = (last - first) / batch_size

    def share(self, whole: Tensor) -> Tensor:
        """Return this rank's rows of what was drawn for the global batch, (batch_size, ...)."""
        return whole if self.count == 1 else whole[self.rows]

    def whole(self, share: Tensor) -> Tensor:
        """Return all ranks' rows of the batch, (batch_size, ...), given this rank's, detached: undoes `share`."""
        if self.count == 1:
            return share
        whole = share.new_zeros(self.batch_size, *share.shape[1:])
        whole[self.rows] = share
        with others():
            dist.all_reduce(whole)
        return whole

    def average_gradients(self, optimizer: Optimizer, *_: object) -> None:
        """Replace the gradients that `optimizer` is about to step on by those of the whole batch; a step pre-hook."""
        if self.count == 1:
            return
        alike = defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    alike[parameter.grad.dtype].append(parameter.grad)
        for gradients in alike.values():
            flat = self.mean(torch.cat([gradient.flatten() for gradient in gradients]))
            pieces = flat.split([gradient.numel() for gradient in gradients])
            for gradient, piece in zip(gradients, pieces, strict=True):
                gradient.copy_(piece.view_as(gradient))

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the whole batch of `values`, each a mean over this rank's rows; may overwrite them."""
        if self.count > 1:
            values.mul_(self.part)
            with others():
                dist.all_reduce(values)
        return values

    def gather(self, value: object) -> list:
        """Return the `value` of every rank."""
        values = [value] * self.count
        if self.count > 1:
            with others():
                dist.all_gather_object(values, value)
        return values

    def start_alike(self, networks: Iterable[nn.Module]) -> None:
        """Give every rank the weights of rank 0: one seed need not give the same bits on two kinds of processor."""
        if self.count > 1:
            with others():
                for network in networks:
                    for tensor in network.state_dict().values():
                        dist.broadcast(tensor, 0)


@contextmanager
def others() -> Iterator[None]:
    """Raise LostRank where an exchange with the other processes fails."""
    try:
        yield
    except RuntimeError as error:
        raise LostRank(f"another process of this run has ended, so this one ends too ({error})") from error


@contextmanager
def one_before_the_others() -> Iterator[None]:
    """Let one process of each machine through the block first: what it downloads lies there for the others.

    They wait until it is done; should it fail, they end with LostRank.
    """
    waits = int(os.environ.get("LOCAL_RANK", 0)) > 0

    def meet() -> None:
        if dist.is_initialized():
            with others():
                dist.all_reduce(torch.zeros(1))

    if waits:
        meet()
    yield
    if not waits:
        meet()


def first_to_complain() -> bool:
    """Return whether this process is the first of its run that asks: what is wrong is then said once, not N times."""
    if not dist.is_torchelastic_launched():
        return True
    try:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(address, port, is_master=False, timeout=timedelta(seconds=10))
        return store.add(f"complaints/{os.environ['TORCHELASTIC_RESTART_COUNT']}", 1) == 1
    except RuntimeError:  # torchrun itself is gone; better said twice than never
        return True


def leave() -> None:
    """End the exchange with the other processes, if there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()
