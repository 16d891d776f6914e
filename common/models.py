"""Networks, independent of the update order: each pair can be replaced by another.

A generator takes noise (N, z_dim) to images (N, C, H, W) in [-1, 1], a discriminator takes images to logits (N, 1);
conditional ones also take labels, int64 (N,). No layer mixes samples of a batch, so real and fake images may share a
pass and a batch may be split over ranks.
"""

from functools import partial
from itertools import pairwise
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def mlp(image_shape: tuple[int, int, int], z_dim: int) -> tuple[nn.Module, nn.Module]:
    """Return the fully connected generator and discriminator of the simple GAN, for images of any shape (C, H, W).

    G's activations are tanh, for the reason that `conv` gives.
    """
    pixels = prod(image_shape)
    generator = nn.Sequential(
        nn.Linear(z_dim, 256),
        nn.Tanh(),
        nn.Linear(256, 256),
        nn.Tanh(),
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


def conv(image_shape: tuple[int, int, int], z_dim: int, width: int = 16) -> tuple[nn.Module, nn.Module]:
    """Return a convolutional generator and discriminator for square images (C, S, S).

    S is 4 * 2^k or 7 * 2^k, from 28 to 256. `width` is the number of channels at S / 2 pixels; it doubles with every
    halving of the size, up to 8 * width, and the smallest features have half as many again. Raises ValueError for other
    sizes. It departs from DCGAN (Radford et al., 2016) in these:

    - group normalisation in G (Wu and He, 2018) and none in D's convolutions, in place of batch normalisation: no layer
      mixes samples, so real and fake may share a pass, and a batch may be split over ranks;
    - D begins with squares of 2x2 pixels as channels: no convolution at the full size, which costs most;
    - D ends, and G begins, with a hidden layer: fewer convolutions for the same FID;
    - G has a residual block at its 7 or 8 pixels (He et al., 2016): clearer digits for little time;
    - G's hidden layers have a mean of zero: tanh, and no bias before the first two. Otherwise the part of the gradient
      that all fakes have in common moves all images in the same way, and G soon ignores its noise; this matters most
      where G trains against the D of the previous step;
    - G clips its noise at 0.15, so most of its values are one of two: fewer samples between the classes of the data
      (Brock et al., 2019, appendix E, compare noise of this kind), at the price of variety (docs/tried.md);
    - G's first layer has orthogonal initial weights (Saxe et al., 2014): each value of the noise has an effect of its
      own. With independent ones G may come to ignore half of them within fifty steps, and ends with few variants;
    - they are large. The norm behind them removes their scale, so Adam changes the layer more slowly (van Laarhoven,
      2017), as StyleGAN trains its mapping network at a smaller rate (Karras et al., 2019).
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


class ConditionalGenerator(nn.Module):
    """A generator that is told the class: its noise is followed by the label, as one value for each class."""

    def __init__(self, generator: nn.Module, classes: int):
        """Take a generator whose noise has z_dim + classes values."""
        super().__init__()
        self.generator, self.classes = generator, classes

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return images (N, C, H, W), given noise (N, z_dim) and labels (N,) from 0 to classes - 1."""
        return self.generator(torch.cat([z, F.one_hot(labels, self.classes).to(z)], dim=1))


class ProjectionDiscriminator(nn.Module):
    """A discriminator that is told the class: to its logit it adds the product of its features and the class's own.

    Miyato and Koyama, "cGANs with Projection Discriminator" (2018).
    """

    def __init__(self, discriminator: nn.Sequential, classes: int):
        """Take a discriminator whose last layer is linear and gives the logit."""
        super().__init__()
        self.features, self.logit = discriminator[:-1], discriminator[-1]
        self.embedding = nn.Embedding(classes, self.logit.in_features)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return logits (N, 1), given images (N, C, H, W) and labels (N,) from 0 to classes - 1."""
        features = self.features(images)
        return self.logit(features) + (self.embedding(labels) * features).sum(dim=1, keepdim=True)


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


def conditional(
    model: str, image_shape: tuple[int, int, int], z_dim: int, classes: int
) -> tuple[ConditionalGenerator, ProjectionDiscriminator]:
    """Return the generator and the discriminator of a model in MODELS, told the class of each image."""
    generator, discriminator = MODELS[model](image_shape, z_dim + classes)
    return ConditionalGenerator(generator, classes), ProjectionDiscriminator(discriminator, classes)
