"""Several processes: DistributedDataParallel, NCCL and forks."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from common.pitfalls.engine import one_rank, one_weight_gan, pitfall
from common.pitfalls.graph import MODIFIED_IN_PLACE


@pitfall(wrong=RuntimeError, right=[[0.49]], errors=("Expected to have finished reduction in the prior iteration",))
class DdpUnusedParameters:
    """DDP: a parameter gets no gradient.

    DDP waits for the gradient of every parameter that requires one. For a layer that the loss does not reach it never
    comes, and the next forward pass raises the error: a second head, a label embedding, the weights named in no
    inputs=.

    Remove or freeze the layer before wrapping; else find_unused_parameters=True, which costs a search at each step.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        generator.spare = nn.Linear(1, 1)
        with one_rank():
            network = DistributedDataParallel(generator)
            for _ in range(2):
                (network(torch.ones(1, 1)) * 0.49).backward()
        return generator.weight.grad

    def right():
        generator, _, _, _ = one_weight_gan()
        generator.spare = nn.Linear(1, 1).requires_grad_(False)
        with one_rank():
            network = DistributedDataParallel(generator)
            for _ in range(2):
                generator.weight.grad = None
                (network(torch.ones(1, 1)) * 0.49).backward()
        return generator.weight.grad


@pitfall(
    wrong=RuntimeError,
    right=[[1.0]],
    errors=("Expected to mark a variable ready only once", "has been marked as ready twice"),
)
class DdpReadyTwice:
    """DDP: a parameter has two gradients in a backward pass.

    A checkpoint of the old form inside DDP, used twice on the same layer, has two backward passes; so has a parameter
    used outside the wrapped forward().

    checkpoint(..., use_reentrant=False); and call the DDP object, not layers of its .module.
    """

    def wrong():
        class Twice(nn.Linear):
            def forward(self, x):
                once = checkpoint(super().forward, x, use_reentrant=True)
                return checkpoint(super().forward, once, use_reentrant=True)

        generator = Twice(1, 1, bias=False)
        nn.init.constant_(generator.weight, 0.5)
        with one_rank():
            options = {"find_unused_parameters": True}
            network = DistributedDataParallel(generator, **options)
            network(torch.ones(1, 1, requires_grad=True)).backward()
        return generator.weight.grad

    def right():
        class Twice(nn.Linear):
            def forward(self, x):
                once = checkpoint(super().forward, x, use_reentrant=False)
                return checkpoint(super().forward, once, use_reentrant=False)

        generator = Twice(1, 1, bias=False)
        nn.init.constant_(generator.weight, 0.5)
        with one_rank():
            network = DistributedDataParallel(generator)
            network(torch.ones(1, 1, requires_grad=True)).backward()
        return generator.weight.grad


@pitfall(
    wrong=RuntimeError,
    right=[[0.5]],
    errors=("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient",),
)
class DdpAllFrozen:
    """DDP around a frozen network.

    There is nothing to average: no parameter requires grad. A D that is frozen for G's step, or a fixed feature
    extractor, is such a network.

    Wrap D before you freeze it; do not wrap what is never trained.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        generator.requires_grad_(False)
        with one_rank():
            return DistributedDataParallel(generator)(torch.ones(1, 1))

    def right():
        generator, _, _, _ = one_weight_gan()
        generator.requires_grad_(False)
        with one_rank():
            return generator(torch.ones(1, 1))


@pitfall(
    wrong=ValueError,
    right=[[0.5]],
    errors=("Default process group has not been initialized", "environment variable RANK expected, but not set"),
)
class DdpNotStarted:
    """DDP before init_process_group().

    The processes must connect first. torchrun sets what they need: RANK, WORLD_SIZE and the address.

    torchrun --standalone --nproc-per-node=2 train.py, and init_process_group() at its start.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        return DistributedDataParallel(generator)(torch.ones(1, 1))

    def right():
        generator, _, _, _ = one_weight_gan()
        with one_rank():
            return DistributedDataParallel(generator)(torch.ones(1, 1))


@pitfall(
    wrong=AttributeError,
    right=[[0.5]],
    errors=("'DistributedDataParallel' object has no attribute", "'DataParallel' object has no attribute"),
)
class DdpAttribute:
    """An attribute of a wrapped network.

    The wrapper has the network as .module, and forwards only forward(). For layers called without the wrapper,
    gradients are not averaged.

    wrapped.module.weight; move the computation into forward().
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        return nn.DataParallel(generator).weight

    def right():
        generator, _, _, _ = one_weight_gan()
        return nn.DataParallel(generator).module.weight


@pitfall(wrong=([[0.49]], [[-0.91]]), right=([[-0.91]], [[-0.91]]))
class DdpRetainGraph:
    """DDP averages the gradient of the wrong loss.

    DDP averages G's gradients in the first backward pass after G's forward pass, and in no other. With
    retain_graph=True that pass is D's loss: its gradient is averaged and then cleared, and G steps on a gradient that
    was not averaged. The weights of the processes diverge without an error. The first number here is what DDP averages,
    the second what G steps on.

    D's loss on fake.detach(), as in gan_detach.py. Or all-reduce the gradients in a pre-hook of optimizer.step(), as
    common/run/ranks.py does.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        averaged = []
        with one_rank():
            network = DistributedDataParallel(generator)
            network.register_comm_hook(averaged, keep)
            fake = network(torch.ones(1, 1))
            d_loss = discriminator(fake) ** 2
            d_loss.backward(retain_graph=True)
            generator.zero_grad()
            g_loss = (discriminator(fake) - 1) ** 2
            g_loss.backward()
        return averaged, generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        averaged = []
        with one_rank():
            network = DistributedDataParallel(generator)
            network.register_comm_hook(averaged, keep)
            fake = network(torch.ones(1, 1))
            d_loss = discriminator(fake.detach()) ** 2
            d_loss.backward()
            generator.zero_grad()
            g_loss = (discriminator(fake) - 1) ** 2
            g_loss.backward()
        return averaged, generator.weight.grad


@pitfall(wrong=([], [[0.49]]), right=([[0.49]], [[0.49]]))
class DdpAutogradGrad:
    """DDP averages nothing that autograd.grad() computes.

    DDP averages a gradient when it is accumulated into .grad. torch.autograd.grad() returns gradients instead, so each
    process keeps its own. The first number is what DDP averages.

    backward(), with inputs= for G's weights alone; or dist.all_reduce() of the gradients that autograd.grad() returns.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        averaged = []
        with one_rank():
            network = DistributedDataParallel(generator)
            network.register_comm_hook(averaged, keep)
            g_loss = discriminator(network(torch.ones(1, 1))) ** 2
            (generator.weight.grad,) = torch.autograd.grad(g_loss, generator.weight)
        return averaged, generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        averaged = []
        with one_rank():
            network = DistributedDataParallel(generator)
            network.register_comm_hook(averaged, keep)
            g_loss = discriminator(network(torch.ones(1, 1))) ** 2
            g_loss.backward(inputs=list(generator.parameters()))
        return averaged, generator.weight.grad


def keep(averaged: list, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Record the gradients that DDP averages; with one process the average is the gradient itself."""
    averaged.append(bucket.buffer().tolist())
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


@pitfall(
    wrong=RuntimeError,
    errors=MODIFIED_IN_PLACE,
    hints=("DistributedDataParallel", "broadcast_buffers", "Tensor [#]] is at version #; expected version #"),
    not_run="It depends on the version: on the CPU PyTorch 2.6.0 raises it, also with one process, and 2.15.0 does "
    "not; for CUDA see https://github.com/pytorch/pytorch/issues/175024 and .../issues/22095.",
)
class DdpBatchNormTwice:
    """DDP: two forward passes of a BatchNorm, one backward().

    Before each forward pass DDP copies the buffers of process 0 into all, in place. This changes the buffers that the
    previous pass saved: D on real images, then D on fakes, then one backward(). The message names a tensor with one
    dimension, a running mean or variance, which no operation made.

    DistributedDataParallel(..., broadcast_buffers=False), or one pass over torch.cat((real, fake)), or a norm without
    running statistics.
    """


@pitfall(
    wrong=RuntimeError,
    errors=("Watchdog caught collective operation timeout", "Detected mismatch between collectives on ranks"),
    not_run="It takes several processes and minutes of waiting; the messages are in PyTorch's ProcessGroupNCCL.cpp and "
    "ProcessGroupWrapper.cpp.",
)
class RanksDisagree:
    """A process waits for others that do something else.

    An all-reduce needs all processes. One that takes another branch (a loss skipped as NaN, D trained only when it
    lags, a shorter epoch, an `if rank == 0` around a forward pass) makes the others wait.

    Decide by a number that all processes have: all_reduce() the loss first. TORCH_DISTRIBUTED_DEBUG=DETAIL names the
    rank that differs.
    """


@pitfall(
    wrong=RuntimeError,
    errors=("Unable to handle autograd's threading in combination with fork-based multiprocessing",),
    not_run="It takes CUDA: the message is in PyTorch's torch/csrc/autograd/engine.cpp, and is about threads that the "
    "CPU alone does not have.",
)
class BackwardAfterFork:
    """backward() in a process forked after one.

    The threads of autograd do not survive a fork. The parent must not call backward() before it forks workers that call
    it.

    torch.multiprocessing.set_start_method("spawn").
    """
