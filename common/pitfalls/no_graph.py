"""A loss without a graph: where the graph was lost."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F

from common.pitfalls.engine import one_weight_gan, pitfall

NO_GRAPH = ("does not require grad and does not have a grad_fn",)


@pitfall(wrong=RuntimeError, right=(None, [[0.35]]), errors=NO_GRAPH, hints=("no_grad()",))
class NoGraph:
    """backward() on a loss computed under no_grad().

    Under no_grad() nothing is recorded, whatever the weights say. The loss has no graph to go back through.

    Keep under no_grad() only what is to get no gradient: here the fakes that D learns from.
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

    An output requires grad when any of its inputs does, weights or what comes in. With D frozen, G's weights are all
    that is left, and detach() cuts them off.

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

    inference_mode() records nothing, as no_grad() does, and what is made under it can never be recorded later.

    No inference_mode() around anything that is trained. A decorator above a function counts, too.
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

    A loss of the scores themselves, such as BCE with logits. The share of right answers is for printing.
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

    Join losses with + or torch.stack(losses).mean(), and leave the numbers to the log.
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

    torch.autograd.grad() gives gradients without a graph of their own, so the penalty cannot be sent backward. Added
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
