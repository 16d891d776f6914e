"""Silent: gradient penalties that have another effect than the one intended, or none."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(wrong=([[0.9, 0.8], [0.9, 0.8]], 0.025), right=([1.70294], 0.49412))
class PenaltyOfPixels:
    """A penalty on images whose norm runs over one dimension.

    norm(2, dim=1) of a slope of shape (N, C, H, W) is the norm over the channels: one for each pixel. The penalty then
    asks for a slope of 1 at every pixel, and the slope of an image of H x W pixels grows towards sqrt(H W), where 1
    was meant. The code comes from networks that take flat images, of shape (N, C * H * W), for which dim=1 is right.

    slope.flatten(1).norm(2, dim=1): one norm for each image.
    """

    def wrong():
        weight = torch.tensor([[[0.9, 0.8], [0.9, 0.8]]])
        images = torch.zeros(1, 1, 2, 2, requires_grad=True)
        score = (weight * images).sum((1, 2, 3))
        (slope,) = torch.autograd.grad(score.sum(), images, create_graph=True)
        norms = slope.norm(2, dim=1)
        return norms[0], ((norms - 1) ** 2).mean()

    def right():
        weight = torch.tensor([[[0.9, 0.8], [0.9, 0.8]]])
        images = torch.zeros(1, 1, 2, 2, requires_grad=True)
        score = (weight * images).sum((1, 2, 3))
        (slope,) = torch.autograd.grad(score.sum(), images, create_graph=True)
        norms = slope.flatten(1).norm(2, dim=1)
        return norms, ((norms - 1) ** 2).mean()


@pitfall(wrong=None, right=[[-0.112]])
class PenaltyOnFrozen:
    """A penalty computed while D is frozen.

    A graph records the weights that require grad during the forward pass. If D is still frozen from G's step when it
    scores the images of the penalty, the slope has a graph, but D's weights are not in it: the penalty goes backward
    without an error and changes nothing. Unfreezing D before backward() comes too late.

    discriminator.requires_grad_(True) before D's forward pass.
    """

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
        discriminator.requires_grad_(False)
        discriminator.requires_grad_(True)
        images = torch.ones(1, 1, requires_grad=True)
        score = discriminator(images) ** 2
        (slope,) = torch.autograd.grad(score, images, create_graph=True)
        ((slope - 1) ** 2).backward()  # slope = 2 weight^2
        return discriminator.weight.grad
