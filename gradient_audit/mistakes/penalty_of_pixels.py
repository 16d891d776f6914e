"""A penalty on images whose norm runs over one dimension."""

import torch

WHY = """norm(2, dim=1) of a slope of shape (N, C, H, W) is the norm over the channels: one for each pixel. The
penalty then asks for a slope of 1 at every pixel, and the slope of an image of H x W pixels grows towards sqrt(H
W), where 1 was meant. The code comes from networks that take flat images, of shape (N, C * H * W), for which
dim=1 is right."""
CURE = "slope.flatten(1).norm(2, dim=1): one norm for each image."
WRONG_RETURNS = ([[0.9, 0.8], [0.9, 0.8]], 0.025)
RIGHT_RETURNS = ([1.70294], 0.49412)


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
