"""Networks, independent of the update order: each pair can be replaced by another.

A generator takes noise (N, z_dim) to images (N, C, H, W) in [-1, 1], a discriminator takes images to logits (N, 1). No
layer mixes samples of a batch, so real and fake images may share a pass and a batch may be split over ranks.
"""

from itertools import pairwise
from math import prod

import torch
from torch import nn


def mlp(image_shape: tuple[int, int, int], z_dim: int) -> tuple[nn.Module, nn.Module]:
    """Return the fully connected generator and discriminator of the simple GAN, for images of any shape (C, H, W)."""
    pixels = prod(image_shape)
    generator = nn.Sequential(
        nn.Linear(z_dim, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, pixels),
        nn.Tanh(),
        nn.Unflatten(1, image_shape),
    )
    discriminator = nn.Sequential(
        nn.Flatten(),
        nn.Linear(pixels, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 1),
    )
    return generator, discriminator


def dcgan(image_shape: tuple[int, int, int], z_dim: int, width: int = 24) -> tuple[nn.Module, nn.Module]:
    """Return a convolutional generator and discriminator for square images (C, S, S).

    After Radford et al., "Unsupervised Representation Learning with Deep Convolutional GANs" (2016), with group
    normalisation (Wu and He, 2018) in place of batch normalisation. G maps its noise by a hidden layer to 7 or 8
    pixels, has a residual block of two convolutions there, and doubles the size from then on; D halves the size down to
    4 pixels and ends with a hidden layer. G's activations are tanh, with a mean near zero. With ReLU, whose mean is
    positive, the part of the gradient that all fakes have in common moves all images in the same way, and G soon
    ignores its noise; this matters most for the orders in which G trains against the D of the previous step. S is
    4 * 2^k or 7 * 2^k, from 28 to 256. `width` is the number of channels at S / 2 pixels; it doubles with every halving
    of the size down to 7 or 8 pixels, up to 8 * width. Raises ValueError for other sizes.
    """
    channels, height, size = image_shape
    if height != size or size not in DCGAN_SIZES:
        raise ValueError(f"--image-size {height}x{size}: dcgan takes {DCGAN_SIZES}; choose one of them or --model mlp")
    widths, smallest = [], size
    while smallest > 8:
        widths.append(min(width << len(widths), 8 * width))
        smallest //= 2

    down = [nn.Conv2d(channels, widths[0], 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
    for narrow, wide in pairwise([*widths, widths[-1]]):
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), norm(wide), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(widths[-1] * 16, 256), nn.LayerNorm(256), nn.LeakyReLU(0.2), nn.Linear(256, 1)]

    up = [nn.Linear(z_dim, 128), nn.LayerNorm(128), nn.Tanh(), nn.Linear(128, widths[-1] * smallest**2)]
    up += [nn.Unflatten(1, (widths[-1], smallest, smallest)), norm(widths[-1]), nn.Tanh()]
    wide, half = widths[-1], widths[-1] // 2
    up += [Residual(nn.Conv2d(wide, half, 3, padding=1), norm(half), nn.Tanh(), nn.Conv2d(half, wide, 3, padding=1))]
    for wide, narrow in pairwise([*reversed(widths), channels]):
        up += [norm(wide), nn.Tanh(), nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1)]
    up += [nn.Tanh()]
    return tuple(nn.Sequential(*layers).to(memory_format=torch.channels_last) for layers in (up, down))


class Residual(nn.Sequential):
    """Layers whose output is added to their input; after He et al., "Deep Residual Learning" (2016)."""

    def forward(self, features):
        """Return the features plus what the layers make of them, which must be of the same shape."""
        return features + super().forward(features)


def norm(channels: int) -> nn.Module:
    """Return group normalisation in groups of 16 channels; unlike batch normalisation, it does not mix samples."""
    return nn.GroupNorm(max(1, channels // 16), channels)


DCGAN_SIZES = [28, 32, 56, 64, 112, 128, 224, 256]
MODELS = {"dcgan": dcgan, "mlp": mlp}
