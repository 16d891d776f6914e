"""A loss without a graph: where the graph was lost."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F

from common.pitfalls.engine import one_weight_gan, pitfall

NO_GRAPH = ("does not require grad and does not have a grad_fn",)


@pitfall(wrong=RuntimeError, right=(None, [[0.35]]), errors=NO_GRAPH, hints=("no_grad()",))
class NoGraph:
    """backward() on a loss computed under no_grad().

    Under no_grad() nothing is recorded, even if the weights require grad. The loss has no graph for backward().

    Use no_grad() only for what gets no gradient: here the fakes that D is trained on.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        with torch.no_grad():
            d_loss = discriminator(generator(torch.ones(1, 1))) ** 2
        d_loss.backward()
        return generator.weight.grad, discriminator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        with torch.no_grad():
            fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake) ** 2
        d_loss.backward()
        return generator.weight.grad, discriminator.weight.grad


@pitfall(wrong=RuntimeError, right=([[0.49]], None), errors=NO_GRAPH, hints=("requires_grad = False",))
class AllFrozen:
    """D is frozen and the fakes are detached: nothing left.

    An output requires grad if a weight or an input does. With D frozen, only G's weights require grad, and detach()
    cuts off the graph to them.

    Detach the fakes in D's loss, never in G's. print(loss.requires_grad) tells whether there is a graph.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        fake = generator(torch.ones(1, 1)).detach()
        g_loss = discriminator(fake) ** 2
        g_loss.backward()
        return generator.weight.grad, discriminator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        fake = generator(torch.ones(1, 1))
        g_loss = discriminator(fake) ** 2
        g_loss.backward()
        return generator.weight.grad, discriminator.weight.grad


@pitfall(wrong=RuntimeError, right=[[0.49]], errors=NO_GRAPH, hints=("inference_mode",))
class NoGraphInference:
    """backward() on a loss computed in inference_mode().

    inference_mode() records nothing, as no_grad() does, and tensors made under it cannot be recorded later.

    No inference_mode() around anything that is trained. This includes decorators of functions.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        with torch.inference_mode():
            loss = discriminator(generator(torch.ones(1, 1))) ** 2
        loss.backward()
        return generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        loss = discriminator(generator(torch.ones(1, 1))) ** 2
        loss.backward()
        return generator.weight.grad


@pitfall(wrong=RuntimeError, right=[-0.25, 0.2], errors=NO_GRAPH, hints=("argmax", "argmin", "multinomial", "accuracy"))
class StepFunction:
    """A loss of decisions: argmax, > 0.5, counts.

    argmax, comparisons, sampling, and casts to integers give steps: no small change of a score changes them, so they
    have no gradient. round() and sign() have one, which is zero.

    A loss of the scores themselves, such as BCE with logits. Accuracy is only for printing.
    """

    def wrong():
        logits = torch.tensor([0.0, 1.3863], requires_grad=True)
        accuracy = (logits > 0.5).float().mean()
        (1 - accuracy).backward()
        return logits.grad

    def right():
        logits = torch.tensor([0.0, 1.3863], requires_grad=True)  # 0.5 and 0.8
        label = torch.tensor([1.0, 0.4])
        F.binary_cross_entropy_with_logits(logits, label).backward()
        return logits.grad


@pitfall(wrong=RuntimeError, right=1.0, errors=NO_GRAPH, hints=("loss.item()", "torch.tensor(loss", "from_numpy"))
class LossRebuilt:
    """A loss is rebuilt from numbers: torch.tensor(...).

    .item(), .numpy(), .tolist(), and torch.tensor() of a tensor copy values, without the graph behind them. The new
    tensor is a leaf that depends on nothing.

    Join losses with + or torch.stack(losses).mean(), and use the numbers only for logging.
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        losses = [weight**2, -weight]
        torch.tensor([loss.item() for loss in losses]).sum().backward()
        return weight.grad

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        losses = [weight**2, -weight]
        torch.stack(losses).sum().backward()
        return weight.grad


@pitfall(wrong=RuntimeError, right=18.0, errors=NO_GRAPH, hints=("penalty", "autograd.grad(outputs"))
class PenaltyWithoutGraph:
    """A gradient penalty without create_graph=True.

    torch.autograd.grad() gives gradients without a graph of their own, so backward() of the penalty has no graph. Added
    to another loss it gives no error, but has no effect: see silent-penalty.

    torch.autograd.grad(..., create_graph=True).
    """

    def wrong():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(3.0, requires_grad=True)
        (slope,) = torch.autograd.grad(weight**2 * x, x)
        (slope**2 / 6).backward()
        return weight.grad

    def right():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(3.0, requires_grad=True)
        (slope,) = torch.autograd.grad(weight**2 * x, x, create_graph=True)
        (slope**2 / 6).backward()  # slope^2 = weight^4
        return weight.grad
