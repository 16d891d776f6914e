"""Networks, independent of the update order: each pair can be replaced by another.

A generator takes noise (N, z_dim) to images (N, C, H, W) in [-1, 1], a discriminator takes images to logits (N, 1). No
layer mixes samples of a batch, so real and fake images may share a pass and a batch may be split over ranks.
"""

from functools import partial
from itertools import pairwise
from math import prod

import torch
from torch import nn


def mlp(image_shape: tuple[int, int, int], z_dim: int) -> tuple[nn.Module, nn.Module]:
    """Return the fully connected generator and discriminator of the simple GAN, for images of any shape (C, H, W)."""
    pixels = prod(image_shape)
    up = [nn.Linear(z_dim, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh()]
    up += [nn.Linear(256, pixels), nn.Tanh(), nn.Unflatten(1, image_shape)]
    down = [nn.Flatten(), nn.Linear(pixels, 256), nn.LeakyReLU(0.2)]
    down += [nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)]
    return nn.Sequential(*up), nn.Sequential(*down)


def conv(image_shape: tuple[int, int, int], z_dim: int, width: int = 16) -> tuple[nn.Module, nn.Module]:
    """Return a convolutional generator and discriminator for square images (C, S, S), S one of CONV_SIZES.

    `width` is the number of channels at S / 2 pixels; it doubles with every halving of the size, up to 8 * width, and
    the smallest features have half as many again. Raises ValueError for other sizes. Departures from DCGAN (Radford et
    al., 2016); docs/tried.md measures them:

    - no batch normalisation: group normalisation in G (Wu and He, 2018), so no layer mixes samples;
    - D begins with squares of 2x2 pixels as channels, and both networks have a hidden linear layer: cheaper;
    - G has a residual block at its smallest size (He et al., 2016);
    - G's hidden layers have a mean of zero, tanh and no first biases: else what all fakes have in common dominates;
    - G clips its noise at 0.15: fewer samples between the classes, less variety (Brock et al., 2019, appendix E);
    - G's first weights are orthogonal (Saxe et al., 2014) and large, so they change slowly (van Laarhoven, 2017).
    """
    channels, height, size = image_shape
    if height != size or size not in CONV_SIZES:
        raise ValueError(f"conv takes {CONV_SIZES} pixels a side, not {height}x{size}; mlp takes any size")
    widths, side = [], size
    while side > 8:
        widths.append(min(width << len(widths), 8 * width))
        side //= 2
    last, half = widths[-1] * 3 // 2, widths[-1] // 2

    down = [nn.PixelUnshuffle(2), nn.Conv2d(4 * channels, widths[0], 3, padding=1), nn.LeakyReLU(0.2)]
    for narrow, wide in pairwise([*widths, last]):
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(last * 16, 256), nn.LayerNorm(256), nn.LeakyReLU(0.2), nn.Linear(256, 1)]

    up = [nn.Hardtanh(-0.15, 0.15), nn.Linear(z_dim, 128, bias=False), nn.LayerNorm(128, elementwise_affine=False)]
    nn.init.orthogonal_(up[1].weight, gain=17)
    up += [nn.Tanh(), nn.Linear(128, last * side**2, bias=False), nn.Unflatten(1, (last, side, side)), norm(last)]
    up += [nn.Tanh(), Residual(nn.Conv2d(last, half, 3, 1, 1), norm(half), nn.Tanh(), nn.Conv2d(half, last, 3, 1, 1))]
    for wide, narrow in pairwise([last, *reversed(widths[:-1]), channels]):
        up += [norm(wide), nn.Tanh(), nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1)]
    up += [nn.Hardtanh()]
    return tuple(nn.Sequential(*layers).to(memory_format=torch.channels_last) for layers in (up, down))


class Residual(nn.Sequential):
    """Layers whose output is added to their input; after He et al., "Deep Residual Learning" (2016)."""

    def forward(self, features):
        """Return the features plus what the layers make of them, which must be of the same shape."""
        return features + super().forward(features)


def norm(channels: int) -> nn.Module:
    """Return group normalisation in groups of 16 channels; unlike batch normalisation, it does not mix samples."""
    return nn.GroupNorm(max(1, channels // 16), channels)


CONV_SIZES = [28, 32, 56, 64, 112, 128, 224, 256]
MODELS = {"conv": conv, "wide": partial(conv, width=32), "mlp": mlp}
