"""A penalty computed while D is frozen."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """A graph records the weights that require grad during the forward pass. If D is still frozen then, from G's
step, the penalty goes backward and changes nothing. Unfreezing D before backward() comes too late."""
CURE = "discriminator.requires_grad_(True) before D's forward pass."
RIGHT_RETURNS = [[-0.112]]


def wrong():
    _, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)  # for the step of G
    images = torch.ones(1, 1, requires_grad=True)
    score = discriminator(images) ** 2
    (slope,) = torch.autograd.grad(score, images, create_graph=True)
    discriminator.requires_grad_(True)
    ((slope - 1) ** 2).backward()
    return discriminator.weight.grad


def right():
    _, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)  # for the step of G
    discriminator.requires_grad_(True)
    images = torch.ones(1, 1, requires_grad=True)
    score = discriminator(images) ** 2
    (slope,) = torch.autograd.grad(score, images, create_graph=True)
    ((slope - 1) ** 2).backward()  # slope = 2 weight^2
    return discriminator.weight.grad
