"""Data-parallel training under torchrun, where each process is a rank."""

import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from common.errors import BadInput, Stopped, show_lines


class Ranks:
    """The processes of a run, each with its rows of the global batch; with a single one, no method has an effect."""

    def __init__(self, batch_size: int):
        """Find the other processes if torchrun has started this one; raises BadInput for an uneven split."""
        self.rank, self.count = connect()
        self.is_main = self.rank == 0  # only rank 0 writes and prints
        if batch_size < 1 or batch_size % self.count:
            raise BadInput(f"--batch-size {batch_size}: must be 1 or more, a multiple of the {self.count} processes")
        size = batch_size // self.count
        self.rows = slice(self.rank * size, (self.rank + 1) * size)  # those of the global batch that are this rank's

    def average_gradients(self, optimizer: Optimizer, *_: object) -> None:
        """Replace the gradients of `optimizer` by those of the global batch; a step pre-hook, one all-reduce.

        A weight without a gradient in one rank, as of a layer that was skipped there, gets those of the others.
        """
        if self.count == 1:
            return
        weights = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in weights]
        if any(gradient.is_sparse for gradient in gradients):
            raise BadInput("several processes: sparse gradients cannot be averaged; take sparse=False")
        has_gradient = torch.tensor([p.grad is not None for p in weights], device=gradients[0].device)
        flat = self.mean(torch.cat([*(gradient.flatten() for gradient in gradients), has_gradient]))
        *pieces, is_given = flat.split([*map(torch.numel, gradients), len(weights)])
        for index, (weight, gradient, piece) in enumerate(zip(weights, gradients, pieces, strict=True)):
            if weight.grad is not None or is_given[index]:  # the host waits for the second alone
                weight.grad = gradient.copy_(piece.view_as(gradient))

    def check_state(self, state: dict[str, object]) -> None:
        """Give all ranks the weights of rank 0; raises BadInput for a part of the state that they cannot share."""
        if self.count == 1:
            return
        for name, owner in state.items():
            hooks = [*getattr(owner, "_optimizer_step_pre_hooks", {}).values()]
            if isinstance(owner, Optimizer) and hooks[:1] != [self.average_gradients]:
                raise BadInput(f"{name}: register run.ranks.average_gradients as its first step pre-hook, in main")
            if isinstance(owner, torch.amp.GradScaler) and owner.is_enabled():
                raise BadInput(f"{name}: loss scales of several processes differ; --precision bf16 needs none")
            for weight in owner.parameters() if isinstance(owner, nn.Module) else ():
                collective(dist.broadcast, weight.data, 0)  # each may have drawn its own

    def check_same(self, facts: dict[str, object]) -> None:
        """Raise BadInput if another rank has other facts."""
        if any(theirs != facts for theirs in self.gather(facts)):
            raise BadInput("the processes have different options or images; start all with the same command")

    def note_different(self, state: dict[str, object]) -> None:
        """Print the names of the networks in `state` whose parameters are not the same, to the bit, in all ranks."""
        if self.count == 1:
            return
        networks = {name: owner for name, owner in state.items() if isinstance(owner, nn.Module)}
        sums = {name: [sum_of_bits(p) for p in network.parameters()] for name, network in networks.items()}
        everyone = self.gather(sums)
        for name in sums if self.is_main else ():
            if any(theirs[name] != sums[name] for theirs in everyone):
                show_lines(f"note: {name} has other weights in another process; rank 0's are saved: docs/processes.md")

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of the ranks' `values`, which may be overwritten."""
        if self.count > 1:
            collective(dist.all_reduce, values.div_(self.count))
        return values

    def mean_sums(self, sums: dict[str, tuple], device: torch.device) -> dict[str, tuple[float, float]]:
        """Return by name the mean over the ranks of (sum, count), numbers or 0-d tensors; a rank may lack a name."""
        names = [*dict.fromkeys(name for theirs in self.gather([*sums]) for name in theirs)]
        pairs = [sums.get(name, (0.0, 0)) for name in names]
        numbers = [torch.as_tensor(number, device=device).float() for pair in pairs for number in pair]
        means = self.mean(torch.stack(numbers)).tolist() if numbers else []  # all at once
        return dict(zip(names, zip(means[::2], means[1::2], strict=True), strict=True))

    def meet(self, seconds: float = 30) -> None:
        """Wait for the other ranks; raises Stopped if one is not here in so many seconds, as it goes on training."""
        if self.count > 1:  # not by a barrier, in which others than rank 0 would wait for half an hour
            store = dist.distributed_c10d._get_default_store()
            store.set(f"here: {self.rank}", "")
            collective(store.wait, [f"here: {rank}" for rank in range(self.count)], timedelta(seconds=seconds))

    def gather(self, value: object) -> list:
        """Return the `value` of every rank, plain data or tensors on the CPU."""
        values = [value] * self.count
        if self.count > 1:
            collective(dist.all_gather_object, values, value)
        return values


def sum_of_bits(values: Tensor) -> int:
    """Return the sum of a tensor's numbers, each taken as an integer of its bits: the same in any order."""
    return values.detach().double().flatten().view(torch.int64).sum().item()


def connect() -> tuple[int, int]:
    """Connect to the other processes if torchrun has started this one; return its rank and their number, or (0, 1)."""
    if dist.is_torchelastic_launched() and not dist.is_initialized():
        collective(dist.init_process_group, "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        collective(dist.all_reduce, torch.zeros(1))  # else the others would wait for one that an error ends now
    elif not dist.is_initialized() and (size := os.environ.get("WORLD_SIZE", "1")) != "1":  # as a pod sets it
        raise BadInput(f"WORLD_SIZE={size}: torchrun alone starts several processes; for a single one, unset it")
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def collective(operation: Callable[..., object], *arguments: object) -> None:
    """Run an operation of all ranks; raises Stopped if one of them has ended."""
    try:
        operation(*arguments)
    except RuntimeError as error:
        raise Stopped(f"another process of this run has ended, so this one ends too ({error})") from error
