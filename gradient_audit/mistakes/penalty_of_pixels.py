"""A penalty on images whose norm runs over one dimension."""

import torch

WHY = """norm(2, dim=1) of a slope of shape (N, C, H, W) is one norm for each pixel. The penalty then asks for a slope
of 1 at every pixel, which for an image is sqrt(H W). For flat images, where such code comes from, dim=1 is right."""
CURE = "slope.flatten(1).norm(2, dim=1): one norm for each image."
UNSEEN = "the shape of the norm: it must be (N,)."
WRONG_RETURNS = [[[1.0, 1.0], [1.0, 1.0]]]
RIGHT_RETURNS = [2.0]


def wrong():
    images = torch.zeros(1, 1, 2, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(images.sum(), images, create_graph=True)
    return slope.norm(2, dim=1)


def right():
    images = torch.zeros(1, 1, 2, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(images.sum(), images, create_graph=True)
    return slope.flatten(1).norm(2, dim=1)
