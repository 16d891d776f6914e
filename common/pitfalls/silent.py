"""Silent: the wrong gradient, or none."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(wrong=[-7.566e-6, -3.146e-2, -4.07e-6], right=[-3.333e-1, -1.667e-1, -1.513e-5])
class SigmoidThenLogits:
    """A sigmoid, then BCE with logits: the sigmoid twice.

    The loss treats D's probabilities as logits and applies a second sigmoid. D's sigmoid is flat where D is confident
    (logit -10): G gets almost no gradient where it should be largest.

    No sigmoid in D; binary_cross_entropy_with_logits on its output. A sigmoid only to print D(x).
    """

    def wrong():
        logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
        score = torch.sigmoid(logits)
        F.binary_cross_entropy_with_logits(score, torch.ones(3)).backward()
        return logits.grad

    def right():
        logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
        F.binary_cross_entropy_with_logits(logits, torch.ones(3)).backward()
        return logits.grad


@pitfall(wrong=([[0.7]], [[0.0]]), right=([[0.35]], [[0.35]]))
class BothBackward:
    """Both losses go backward, and D steps on the sum.

    backward() adds to .grad of every weight in the graph, and D's weights are in the graph of G's loss. D then steps on
    the sum of both losses.

    Name the weights a loss is for: g_loss.backward(inputs=list(generator.parameters())). Or freeze D with
    requires_grad_(False) during G's backward(), or clear D's gradient before D's own loss.
    """

    def wrong():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        g_loss = discriminator(fake) ** 2
        d_loss.backward()
        g_loss.backward()  # adds to D's gradient
        optimizer_d.step()
        return discriminator.weight.grad, discriminator.weight

    def right():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        g_loss = discriminator(fake) ** 2
        d_loss.backward()
        g_loss.backward(inputs=list(generator.parameters()))
        optimizer_d.step()
        return discriminator.weight.grad, discriminator.weight


@pitfall(wrong=(6.0, -0.2), right=(2.0, 0.4))
class ZeroGradForgotten:
    """optimizer.zero_grad() is missing.

    backward() adds to .grad. Without zero_grad() each step uses the sum of all gradients so far: 2, 4, 6 in place of 2,
    2, 2.

    optimizer.zero_grad() before every backward() that starts a step.
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            (2 * weight).backward()
            optimizer.step()
        return weight.grad, weight

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (2 * weight).backward()
            optimizer.step()
        return weight.grad, weight


@pitfall(wrong=(None, [[0.5]]), right=([[0.49]], [[0.01]]))
class DetachedByMistake:
    """detach() between two networks that learn together.

    No gradient passes detach(): the first network's gradients stay None, and the optimizer skips such weights without a
    warning. The network is not trained.

    detach() only where one loss must not reach a network; not between networks under one optimizer. After a backward(),
    check for weights whose .grad is None.
    """

    def wrong():
        first, second, _, _ = one_weight_gan()
        both = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.SGD(both, lr=1.0)
        loss = second(first(torch.ones(1, 1)).detach()) ** 2
        loss.backward()
        optimizer.step()
        return first.weight.grad, first.weight

    def right():
        first, second, _, _ = one_weight_gan()
        both = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.SGD(both, lr=1.0)
        loss = second(first(torch.ones(1, 1))) ** 2
        loss.backward()
        optimizer.step()
        return first.weight.grad, first.weight


@pitfall(wrong=None, right=2.0)
class LossMadeLeaf:
    """A loss without a graph is made to require grad.

    requires_grad_() on a loss, or Variable(loss.data, requires_grad=True), stops the error "element 0 of tensors does
    not require grad", but the loss is then a leaf that depends on nothing: backward() gives a gradient to the loss
    itself, and the weights are not trained.

    Find where the graph was lost: no-graph, step-function and loss-rebuilt show how.
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        loss = (weight.detach() ** 2).requires_grad_()
        loss.backward()
        return weight.grad

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        loss = weight**2
        loss.backward()
        return weight.grad


@pitfall(wrong=6.0, right=24.0)
class SilentPenalty:
    """A penalty without create_graph=True, beside D's loss.

    Without it the slope is a constant, and the penalty has no gradient. D's own loss has a graph, so there is no error,
    and the printed loss includes a penalty that has no effect.

    torch.autograd.grad(..., create_graph=True). Check: penalty.requires_grad is True.
    """

    def wrong():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(3.0, requires_grad=True)
        score = weight**2 * x
        (slope,) = torch.autograd.grad(score, x, retain_graph=True)
        (score + slope**2 / 6).backward()
        return weight.grad

    def right():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(3.0, requires_grad=True)
        score = weight**2 * x
        (slope,) = torch.autograd.grad(score, x, create_graph=True)
        (score + slope**2 / 6).backward()  # 2 weight + 4 weight^3 / 6
        return weight.grad


@pitfall(wrong=[0.99453, 0.99453], right=[0.29289, 0.29289])
class ClipBeforeUnscale:
    """Gradients are clipped while still scaled.

    A GradScaler multiplies the loss, here by 128, and step() divides the gradients again. Clipping in between compares
    the scaled norm with the limit: the step becomes 128 times too small.

    scaler.unscale_(optimizer) before clip_grad_norm_().
    """

    def wrong():
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(2 * weight.sum()).backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        return weight

    def right():
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(2 * weight.sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        return weight


@pitfall(wrong=[[0.7]], right=[[0.35]])
class OptimizerOldWeights:
    """The optimizer holds weights the network no longer uses.

    An optimizer keeps the tensors it was given. load_state_dict(assign=True), a layer replaced later, or a network
    built anew give the network other tensors; step() changes the old ones, and the network is not trained.

    Make the optimizer last; or load_state_dict() without assign, which copies values into the same tensors.
    """

    def wrong():
        _, discriminator, _, optimizer_d = one_weight_gan()
        stored = {"weight": torch.full((1, 1), 0.7)}
        discriminator.load_state_dict(stored, assign=True)
        (discriminator(torch.full((1, 1), 0.5)) ** 2).backward()
        optimizer_d.step()
        return discriminator.weight

    def right():
        _, discriminator, _, optimizer_d = one_weight_gan()
        stored = {"weight": torch.full((1, 1), 0.7)}
        discriminator.load_state_dict(stored)
        (discriminator(torch.full((1, 1), 0.5)) ** 2).backward()
        optimizer_d.step()
        return discriminator.weight


@pitfall(wrong=None, right=[[0.35]])
class CheckpointInputs:
    """backward(inputs=weights) skips an old checkpoint.

    With use_reentrant=True the weights inside are not part of the graph outside, so inputs= cannot reach them: they get
    no gradient, and there is no error.

    use_reentrant=False.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake, use_reentrant=True)
        (score**2).backward(inputs=list(discriminator.parameters()))
        return discriminator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake, use_reentrant=False)
        (score**2).backward(inputs=list(discriminator.parameters()))
        return discriminator.weight.grad
