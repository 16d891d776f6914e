"""An operation without a second derivative."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

MESSAGES = ("derivative for * is not implemented", "is not differentiable twice", "marked with @once_differentiable")
WHY = """A gradient penalty differentiates D's backward pass. Fused attention has no formula for that, and some other
operations have none at all. The message names the operation."""
CURE = "For attention sdpa_kernel(SDPBackend.MATH) around D's forward pass; else compute the same by other operations."
RIGHT_RETURNS = 16.0


def wrong():
    image = torch.ones(1, 1, 2, 4, requires_grad=True)
    score = F.scaled_dot_product_attention(image, image, image)
    (slope,) = torch.autograd.grad(score.square().sum(), image, create_graph=True)
    slope.sum().backward()
    return image.grad.sum()


def right():
    image = torch.ones(1, 1, 2, 4, requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        score = F.scaled_dot_product_attention(image, image, image)
    (slope,) = torch.autograd.grad(score.square().sum(), image, create_graph=True)
    slope.sum().backward()
    return image.grad.sum()
