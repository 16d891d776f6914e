"""Activation checkpointing: torch.utils.checkpoint."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
from torch.utils.checkpoint import checkpoint

from common.pitfalls.engine import one_weight_gan, pitfall
from common.pitfalls.no_graph import NO_GRAPH


@pitfall(
    wrong=RuntimeError,
    right=[[0.35]],
    errors=(
        *NO_GRAPH,
        "None of the inputs have requires_grad=True",
        "use_reentrant parameter should be passed explicitly",
    ),
    hints=("None of the inputs have requires_grad=True", "torch.utils.checkpoint"),
)
class CheckpointOfConstant:
    """checkpoint() of a network whose input has no grad.

    The old form, use_reentrant=True, records a graph only if an input requires grad. Real images and noise do not
    require grad, so the weights inside get no gradient; there is a warning, and backward() fails unless other losses
    have a graph.

    checkpoint(network, x, use_reentrant=False).
    """

    def wrong():
        _, discriminator, _, _ = one_weight_gan()
        real = torch.full((1, 1), 0.5)
        score = checkpoint(discriminator, real, use_reentrant=True)
        (score**2).backward()
        return discriminator.weight.grad

    def right():
        _, discriminator, _, _ = one_weight_gan()
        real = torch.full((1, 1), 0.5)
        score = checkpoint(discriminator, real, use_reentrant=False)
        (score**2).backward()
        return discriminator.weight.grad


@pitfall(
    wrong=RuntimeError,
    right=([[0.49]],),
    errors=(
        "When use_reentrant=True, torch.utils.checkpoint is incompatible",
        "Checkpointing is not compatible with .grad()",
    ),
)
class CheckpointAndGrad:
    """autograd.grad() or inputs= through a checkpoint.

    The old form runs a backward pass of its own inside, for all weights, so it cannot be used for a gradient penalty or
    backward(inputs=...). If inputs= names only weights inside, there is no error: see checkpoint-inputs.

    use_reentrant=False.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake, use_reentrant=True)
        return torch.autograd.grad(score**2, generator.weight)

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake, use_reentrant=False)
        return torch.autograd.grad(score**2, generator.weight)


@pitfall(
    wrong=RuntimeError,
    right=[-0.9093, 0.27942],
    errors=(
        "different number of tensors was saved during the original forward and recomputation",
        "Recomputed values for the following tensors have different metadata",
        "trying to save more tensors during recomputation",
    ),
)
class CheckpointChanges:
    """A checkpointed network computes something else again.

    The forward pass is run once more in backward(). If it depends on something that changed in between (a counter, a
    flag for the step, autocast, a growing network, compiled shapes), the recomputed tensors do not match the saved
    ones.

    Pass all that it depends on as arguments, and change it after backward() only.
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        layers = [torch.cos]

        def network(x):
            for layer in layers:
                x = layer(x)
            return x * x

        loss = checkpoint(network, x, use_reentrant=False).sum()
        layers.clear()  # the network has changed before its backward pass
        loss.backward()
        return x.grad

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        layers = [torch.cos]

        def network(x):
            for layer in layers:
                x = layer(x)
            return x * x

        loss = checkpoint(network, x, use_reentrant=False).sum()
        loss.backward()
        layers.clear()
        return x.grad
