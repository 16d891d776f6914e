"""torch.autograd.grad(), second derivatives, and gradients that are NaN."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from common.pitfalls.engine import pitfall


@pitfall(wrong=RuntimeError, right=([0.7, 2.8],), errors=("appears to not have been used in the graph",))
class UnusedInGraph:
    """autograd.grad() for a tensor the output never used.

    A gradient penalty uses the derivative of D's score with respect to D's input. Here D got another tensor than the
    one given to autograd.grad(); a copy or a view made after the call does the same. PyTorch 2.6 says that one of the
    tensors was not used, 2.13 and later which one.

    Give autograd.grad() the same tensor object as D. allow_unused=True only turns the error into a None.
    """

    def wrong():
        real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
        mixed = (0.5 * real + 0.5 * fake).requires_grad_()
        weight = torch.tensor(0.7, requires_grad=True)
        score = (weight * fake**2).sum()  # D did not get `mixed`
        return torch.autograd.grad(score, mixed)

    def right():
        real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
        mixed = (0.5 * real + 0.5 * fake).requires_grad_()
        weight = torch.tensor(0.7, requires_grad=True)
        score = (weight * mixed**2).sum()
        return torch.autograd.grad(score, mixed)


@pitfall(wrong=RuntimeError, right=([0.7, 0.7],), errors=("One of the differentiated Tensors does not require grad",))
class PenaltyOfConstant:
    """autograd.grad() with respect to images without grad.

    Images from a data set, and detached fakes, do not require grad, so D's score was not recorded as a function of
    them.

    images.requires_grad_() before D's forward pass; for R1, real = real.detach().requires_grad_().
    """

    def wrong():
        real = torch.tensor([1.0, 3.0])
        weight = torch.tensor(0.7, requires_grad=True)
        return torch.autograd.grad((weight * real).sum(), real)

    def right():
        real = torch.tensor([1.0, 3.0]).requires_grad_()
        weight = torch.tensor(0.7, requires_grad=True)
        return torch.autograd.grad((weight * real).sum(), real)


@pitfall(
    wrong=RuntimeError,
    right=([0.0, 0.0], [0.0, 0.0]),
    errors=("returned nan values in its",),
    hints=("SqrtBackward", "PowBackward", "NormBackward"),
)
class NanGradient:
    """A gradient is NaN: the root of zero.

    The derivative of a root at 0 is infinite, and times 0 it is NaN. The norm of a gradient penalty is such a root.
    Under torch.autograd.set_detect_anomaly(True) backward() names the operation; without, all weights become NaN.

    torch.linalg.vector_norm(), whose gradient at 0 is 0, or (square sum + 1e-12).sqrt(). For log, see logits-to-bce.
    """

    def wrong():
        slope = torch.tensor([0.0, 0.0], requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):
            norm = slope.square().sum().sqrt()
            norm.backward()
        return slope.grad

    def right():
        slope = torch.tensor([0.0, 0.0], requires_grad=True)
        torch.linalg.vector_norm(slope).backward()
        norm = slope.grad
        slope.grad = None
        (slope.square().sum() + 1e-12).sqrt().backward()
        return norm, slope.grad


@pitfall(
    wrong=RuntimeError,
    right=16.0,
    errors=("derivative for aten::* is not implemented", "the derivative for '*' is not implemented"),
)
class DerivativeMissing:
    """An operation without a second derivative.

    A gradient penalty differentiates D's backward pass. Fused attention has no formula for that, and some other
    operations have none at all. The message names the operation.

    For attention sdpa_kernel(SDPBackend.MATH) around D's forward pass; else compute the same by other operations.
    """

    def wrong():
        image = torch.ones(1, 1, 2, 4, requires_grad=True)
        score = F.scaled_dot_product_attention(image, image, image)
        loss = score.square().sum()
        (slope,) = torch.autograd.grad(loss, image, create_graph=True)
        slope.sum().backward()
        return image.grad.sum()

    def right():
        image = torch.ones(1, 1, 2, 4, requires_grad=True)
        with sdpa_kernel(SDPBackend.MATH):
            score = F.scaled_dot_product_attention(image, image, image)
        loss = score.square().sum()
        (slope,) = torch.autograd.grad(loss, image, create_graph=True)
        slope.sum().backward()
        return image.grad.sum()
