"""Custom autograd.Functions."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from common.pitfalls.engine import pitfall


@pitfall(
    wrong=RuntimeError,
    right=[2.0, 6.0],
    errors=(
        "returned an incorrect number of gradients",
        "returned an invalid gradient at index",
        "expected Variable or None (got",
    ),
)
class FunctionGradients:
    """backward() of a Function returns what does not fit.

    It returns one gradient for each argument of forward(), in order: a tensor of that argument's shape, or None for an
    argument without a gradient. Here forward() has two arguments.

    return gradient, None: None for arguments without a gradient.
    """

    def wrong():
        class Scale(Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.save_for_backward(x)
                return x * x * factor

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Scale.apply(x, 1.0).sum().backward()
        return x.grad

    def right():
        class Scale(Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.save_for_backward(x)
                return x * x * factor

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient, None  # `factor` gets none

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Scale.apply(x, 1.0).sum().backward()
        return x.grad


@pitfall(wrong=TypeError, right=[2.0, 2.0], errors=("save_for_backward can only save variables",))
class FunctionSavesNumber:
    """save_for_backward() gets a number.

    It takes tensors, and checks them for in-place edits.

    Store other values as an attribute: ctx.factor = factor. Tensors belong in save_for_backward(): an attribute is not
    checked.
    """

    def wrong():
        class Scale(Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.save_for_backward(factor)
                return x * factor

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.saved_tensors[0], None

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Scale.apply(x, 2.0).sum().backward()
        return x.grad

    def right():
        class Scale(Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.factor, None

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Scale.apply(x, 2.0).sum().backward()
        return x.grad


@pitfall(
    wrong=RuntimeError,
    right=[-1.0, -1.0],
    errors=("Legacy autograd function with non-static forward method", "either the backward or vjp method"),
)
class FunctionOfOldStyle:
    """A Function without static methods or backward().

    Since PyTorch 1.5 forward() and backward() are static methods with ctx as their first argument, and the class is not
    instantiated. Gradient reversal layers in old repositories have the old form.

    @staticmethod on both, and Reverse.apply(x) in place of Reverse()(x).
    """

    def wrong():
        class Reverse(Function):
            def forward(self, x):
                return x.view_as(x)

            def backward(self, gradient):
                return -gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Reverse()(x).sum().backward()
        return x.grad

    def right():
        class Reverse(Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)

            @staticmethod
            def backward(ctx, gradient):
                return -gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Reverse.apply(x).sum().backward()
        return x.grad


@pitfall(
    wrong=RuntimeError,
    right=[12.0, 108.0],
    errors=("marked with @once_differentiable",),
)
class FunctionOnce:
    """A gradient penalty through a Function marked once.

    once_differentiable declares that backward() of the Function cannot be differentiated itself, which a penalty needs.
    CUDA extensions such as StyleGAN2's have such Functions, with a double backward of their own or without.

    Remove the decorator if backward() consists of PyTorch's operations; else use the plain operations for a penalty.
    """

    def wrong():
        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once_differentiable
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        loss = Square.apply(x).square().sum()
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        slope.sum().backward()
        return x.grad

    def right():
        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        loss = Square.apply(x).square().sum()
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        slope.sum().backward()  # x^4 differentiated twice: 12 x^2
        return x.grad


@pitfall(wrong=RuntimeError, right=[2.0, 2.0], errors=("This view was created inside a custom Function",))
class FunctionReturnsView:
    """What a Function returned is edited, and is a view.

    The output of forward() here is a view of its input, or the input itself. An edit of it would bypass the Function's
    backward().

    Return x.clone(), or do not edit the result.
    """

    def wrong():
        class Flatten(Function):
            @staticmethod
            def forward(ctx, x):
                return x.view(-1)

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Flatten.apply(x * 1).mul_(2).sum().backward()
        return x.grad

    def right():
        class Flatten(Function):
            @staticmethod
            def forward(ctx, x):
                return x.view(-1).clone()

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        x = torch.tensor([1.0, 3.0], requires_grad=True)
        Flatten.apply(x * 1).mul_(2).sum().backward()
        return x.grad
