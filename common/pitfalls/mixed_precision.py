"""Mixed precision: GradScaler and autocast."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(
    wrong=AssertionError,
    right=[[0.01]],
    errors=("No inf checks were recorded", "_scale is None", "_growth_tracker is None"),
)
class ScalerNoGradients:
    """scaler.step() of an optimizer that has no gradients.

    The scaler found no gradients for this optimizer: backward() of its loss was not called, reached other weights, or
    the loss was not scaled. Calling update() in a step without step() gives a similar message.

    scaler.scale(g_loss).backward() before scaler.step(optimizer_g); one scaler and one update() a step for both
    optimizers.
    """

    def wrong():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        scaler = torch.amp.GradScaler("cpu")
        fake = generator(torch.ones(1, 1))
        scaler.scale(discriminator(fake.detach()) ** 2).backward()
        scaler.step(optimizer_d)
        scaler.step(optimizer_g)  # G's loss has not gone backward
        scaler.update()
        return generator.weight

    def right():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        scaler = torch.amp.GradScaler("cpu")
        fake = generator(torch.ones(1, 1))
        d_loss, g_loss = discriminator(fake.detach()) ** 2, discriminator(fake) ** 2
        scaler.scale(d_loss).backward()
        scaler.scale(g_loss).backward(inputs=list(generator.parameters()))
        scaler.step(optimizer_d)
        scaler.step(optimizer_g)
        scaler.update()
        return generator.weight


@pitfall(
    wrong=RuntimeError,
    right=[0.4, 0.2],
    errors=(
        "unscale_() has already been called",
        "unscale_() is being called after step()",
        "step() has already been called since the last update()",
    ),
)
class ScalerOutOfOrder:
    """unscale_() or step() twice before update().

    Between two calls of update(), each optimizer takes unscale_() at most once and step() once, in this order. Two
    steps of D need two calls of update().

    scale(loss).backward(), unscale_(optimizer), clip, step(optimizer), update().
    """

    def wrong():
        weight = torch.tensor([1.0, 1.0], requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale((weight * torch.tensor([3.0, 4.0])).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        return weight

    def right():
        weight = torch.tensor([1.0, 1.0], requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale((weight * torch.tensor([3.0, 4.0])).sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        return weight


@pitfall(wrong=ValueError, right=[0.9], errors=("Attempting to unscale FP16 gradients",))
class HalfWeights:
    """A GradScaler with a network in half().

    The loss scale keeps small gradients in float16 from becoming 0; the weights they change are float32. In weights of
    float16 small changes are lost by rounding.

    Leave the network in float32 and compute under torch.autocast; no half().
    """

    def wrong():
        weight = torch.ones(1).half().requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        return weight

    def right():
        weight = torch.ones(1).requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(weight.half().sum()).backward()
        scaler.step(optimizer)
        return weight


@pitfall(wrong=RuntimeError, right=[0.9], errors=("Closure use is not currently supported if GradScaler is enabled",))
class ScalerWithClosure:
    """scaler.step(optimizer, closure).

    The scaler must check the gradients before the step, and a closure computes them inside it.

    Compute the loss and call backward() first; then scaler.step(optimizer).
    """

    def wrong():
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)

        def closure():
            scaler.scale(weight.sum()).backward()

        scaler.step(optimizer, closure=closure)
        return weight

    def right():
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        return weight


@pitfall(
    wrong=RuntimeError,
    errors=("binary_cross_entropy and BCELoss are unsafe to autocast",),
    not_run="Only CUDA refuses this; the message is in PyTorch's aten/src/ATen/autocast_mode.h.",
)
class BceUnderAutocast:
    """BCELoss under autocast.

    The sigmoid before it is computed in float16, where a confident D gives exactly 0 or 1, and the logarithm is
    infinite.

    binary_cross_entropy_with_logits, and no sigmoid in D.
    """
