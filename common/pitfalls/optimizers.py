"""Optimizers: what they are given, their state, and their order."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(wrong=ValueError, right=1, errors=("optimizer got an empty parameter list",))
class NoParameters:
    """An optimizer without parameters: an iterator used up.

    parameters() is an iterator that can be used once. If they are counted first, the optimizer gets none. Layers kept
    in a Python list in place of nn.ModuleList have no parameters either.

    list(network.parameters()) if they are needed twice; nn.ModuleList for layers.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        weights = generator.parameters()
        count = sum(weight.numel() for weight in weights)
        optimizer = torch.optim.SGD(weights, lr=1.0)
        return count, optimizer

    def right():
        generator, _, _, _ = one_weight_gan()
        weights = list(generator.parameters())
        count = sum(weight.numel() for weight in weights)
        torch.optim.SGD(weights, lr=1.0)
        return count


@pitfall(
    wrong=TypeError,
    right=[[0.5]],
    errors=(
        "params argument given to the optimizer should be an iterable of Tensors or dicts",
        "optimizer can only optimize Tensors",
    ),
)
class NotParameters:
    """An optimizer gets a network or a single tensor.

    It takes an iterable of tensors, or of dicts with a key "params".

    network.parameters(), [z] for one tensor, and [*g_a.parameters(), *g_b.parameters()] for two networks.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        optimizer = torch.optim.SGD([generator, discriminator], lr=1.0)
        return optimizer.param_groups[0]["params"][0]

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        both = [*generator.parameters(), *discriminator.parameters()]
        optimizer = torch.optim.SGD(both, lr=1.0)
        return optimizer.param_groups[0]["params"][0]


@pitfall(
    wrong=ValueError,
    right=2,
    errors=(
        "some parameters appear in more than one parameter group",
        "optimizer contains a parameter group with duplicate parameters",
    ),
)
class ParameterTwice:
    """A weight is given to one optimizer twice.

    Two networks that share a layer, or one network named in two groups. Within one group it is only a warning, and the
    weight takes each step twice.

    One group for each weight; list(dict.fromkeys(weights)) drops repetitions and keeps the order.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.weight = generator.weight
        groups = [{"params": generator.weight}, {"params": discriminator.weight}]
        return len(torch.optim.SGD(groups, lr=1.0).param_groups)

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        groups = [{"params": generator.weight}, {"params": discriminator.weight}]
        return len(torch.optim.SGD(groups, lr=1.0).param_groups)


@pitfall(
    wrong=ValueError,
    right=0.5,
    errors=(
        "parameter group that doesn't match the size of optimizer's group",
        "loaded state dict has a different number of parameter groups",
    ),
)
class OtherOptimizerState:
    """An optimizer loads the state of another.

    The state is stored by position. It fits only an optimizer with as many weights, in the same order: G's state loaded
    into D's optimizer, or that of a network before a layer was added, does not fit. If the numbers happen to agree
    there is no error.

    Store each optimizer under its own name, and build both as they were when they were stored.
    """

    def wrong():
        one, two = nn.Linear(1, 1, bias=False), nn.Linear(1, 1)
        stored = torch.optim.SGD(one.parameters(), lr=0.5).state_dict()
        optimizer = torch.optim.SGD(two.parameters(), lr=1.0)
        optimizer.load_state_dict(stored)
        return optimizer.param_groups[0]["lr"]

    def right():
        two = nn.Linear(1, 1)
        stored = torch.optim.SGD(two.parameters(), lr=0.5).state_dict()
        optimizer = torch.optim.SGD(two.parameters(), lr=1.0)
        optimizer.load_state_dict(stored)
        return optimizer.param_groups[0]["lr"]


@pitfall(wrong=TypeError, right=0.0, errors=("missing 1 required positional argument: 'closure'",))
class LbfgsWithoutClosure:
    """LBFGS.step() without a closure.

    LBFGS computes the loss several times in a step, so step() takes a function that computes it and its gradient.

    optimizer.step(closure). For GANs use Adam: LBFGS needs a loss that stays the same function.
    """

    def wrong():
        z = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.LBFGS([z])
        (z**2).backward()
        optimizer.step()
        return z

    def right():
        z = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.LBFGS([z])

        def closure():
            optimizer.zero_grad()
            loss = z**2
            loss.backward()
            return loss

        optimizer.step(closure)
        return z


@pitfall(wrong=[0.95], right=[0.9], errors=("Detected call of `lr_scheduler.step()` before `optimizer.step()`",))
class SchedulerFirst:
    """scheduler.step() before optimizer.step().

    The schedule is then one step ahead: its first learning rate is never used. With two optimizers, each schedule
    counts the steps of its own optimizer. A GradScaler that skips the first step for an overflow gives the warning,
    too; that is harmless.

    optimizer.step(), then scheduler.step().
    """

    def wrong():
        weight = torch.tensor([1.0], requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
        weight.sum().backward()
        scheduler.step()
        optimizer.step()
        return weight

    def right():
        weight = torch.tensor([1.0], requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
        weight.sum().backward()
        optimizer.step()
        scheduler.step()
        return weight


@pitfall(
    wrong=RuntimeError,
    right=True,
    errors=(
        "`fused` and `foreach` cannot be `True` together",
        "`fused` does not support `differentiable`",
        "`fused=True` requires all the params to be floating point Tensors",
    ),
)
class FusedWithOthers:
    """fused=True together with foreach=True.

    Each selects an implementation of the step, and only one can be used. fused=True also needs weights of a floating
    dtype on a device that supports it.

    fused=True alone; fused-step shows which check it disables.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        weights = generator.parameters()
        optimizer = torch.optim.Adam(weights, fused=True, foreach=True)
        return optimizer.defaults["fused"]

    def right():
        generator, _, _, _ = one_weight_gan()
        optimizer = torch.optim.Adam(generator.parameters(), fused=True)
        return optimizer.defaults["fused"]


@pitfall(wrong=RuntimeError, right=[[1.0], [0.9]], errors=("does not support sparse gradients",))
class SparseGradients:
    """Adam with nn.Embedding(sparse=True).

    The gradient of such an embedding has only the rows that were used, and Adam updates all rows.

    sparse=False for the labels of a conditional GAN: the table is small. SparseAdam or SGD take sparse gradients.
    """

    def wrong():
        rows = torch.ones(2, 1)
        table = nn.Embedding.from_pretrained(rows, freeze=False, sparse=True)
        optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
        table(torch.tensor([1])).sum().backward()
        optimizer.step()
        return table.weight

    def right():
        rows = torch.ones(2, 1)
        table = nn.Embedding.from_pretrained(rows, freeze=False)
        optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
        table(torch.tensor([1])).sum().backward()
        optimizer.step()
        return table.weight


@pitfall(wrong=RuntimeError, right=5.0, errors=("is non-finite, so it cannot be clipped",))
class ClipNotFinite:
    """clip_grad_norm_() finds NaN or infinity.

    error_if_nonfinite=True stops where a gradient is not finite. Without it, clipping by a norm that is NaN makes all
    gradients NaN.

    Find the loss that is not finite: see nan-gradient. Under a GradScaler call unscale_() first.
    """

    def wrong():
        weight = torch.tensor([3.0, 4.0], requires_grad=True)
        (0.5 * weight.square() / 0.0).sum().backward()
        return nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)

    def right():
        weight = torch.tensor([3.0, 4.0], requires_grad=True)
        (0.5 * weight.square()).sum().backward()
        return nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)


@pitfall(
    wrong=RuntimeError,
    right=[[0.5]],
    errors=(
        'Unexpected key(s) in state_dict: "module.',
        'Unexpected key(s) in state_dict: "_orig_mod.',
        'Missing key(s) in state_dict: "module.',
        'Missing key(s) in state_dict: "_orig_mod.',
    ),
)
class StateOfWrapped:
    """A network loads the weights of a wrapped one.

    torch.compile() stores names with the prefix _orig_mod., DistributedDataParallel and DataParallel with module.; the
    plain network has neither.

    Store the network itself: compiled._orig_mod.state_dict(), ddp.module.state_dict(); or network.compile(), which
    changes no names.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        wrapped = nn.DataParallel(generator)
        discriminator.load_state_dict(wrapped.state_dict())
        return discriminator.weight

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        wrapped = nn.DataParallel(generator)
        discriminator.load_state_dict(wrapped.module.state_dict())
        return discriminator.weight
