"""Networks, independent of the update order: each pair can be replaced by another.

A generator takes noise (N, z_dim) to images (N, C, H, W) in [-1, 1], a discriminator takes images to logits (N, 1). No
layer mixes samples of a batch, so real and fake images may share a pass and a batch may be split over ranks.
"""

from functools import partial
from itertools import pairwise
from math import prod

import torch
from torch import nn

STYLE = 128  # length of the vector that a generator makes of the noise
CONV_SIZES = {28: 2, 32: 2, 56: 3, 64: 3, 112: 4, 128: 4, 224: 5, 256: 5}  # pixels a side, and how often it is halved


def mlp(image_shape: tuple[int, int, int], z_dim: int, normalise: float = 0) -> tuple[nn.Module, nn.Module]:
    """Return the fully connected networks of the simple GAN, for images (C, H, W); D's weights are never normalised."""
    pixels = prod(image_shape)
    up = [nn.Linear(z_dim, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, pixels), nn.Tanh()]
    down = [nn.Flatten(), nn.Linear(pixels, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2)]
    return nn.Sequential(*up, nn.Unflatten(1, image_shape)), nn.Sequential(*down, nn.Linear(256, 1))


def conv(image_shape: tuple[int, int, int], z_dim: int, normalise: float = 1, width: int = 16) -> tuple:
    """Return a convolutional generator and discriminator of images (C, S, S), S one of CONV_SIZES; else ValueError.

    normalise: the root mean square of the singular values of each of D's weights; 0 leaves them free. Less makes D less
    steep: updates of both networks from the same weights take 0.8, as with 1 some seeds end badly.

    Departures from DCGAN (Radford et al., 2016):
    - no batch normalisation, which mixes samples: G's is of groups (Wu and He, 2018), D's of weights (`Normalised`);
    - G maps the noise to a style first, in a layer that learns slowly as its weights are large; D has a hidden layer;
    - the style shifts G's normalised features; in colour or above 32 pixels it scales them, too (Karras et al., 2019),
      and G upsamples before a convolution, as a transposed one leaves a lattice (Odena et al., 2016);
    - D begins with squares of 2x2 pixels as channels, as G for small grey images ends (Shi et al., 2016).
    """
    channels, height, size = image_shape
    if height != size or size not in CONV_SIZES:
        raise ValueError(f"conv takes {[*CONV_SIZES]} pixels a side, not {height}x{size}; mlp takes any size")
    widths = [width * scale for scale in (1, 2, 4, 8, 8)][: CONV_SIZES[size]]  # channels at S/2, S/4, ... pixels
    down, channels_d = [nn.PixelUnshuffle(2)], [4 * channels, *(2 * each for each in widths)]  # (4 C, S/2, S/2)
    for narrow, wide in pairwise(channels_d):  # (2 width, S/4, S/4), ..., (wide, 4, 4)
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(wide * 16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)]  # (64), then the logit, (1)
    for layer in [layer for layer in down if normalise and hasattr(layer, "weight")]:
        nn.utils.parametrize.register_parametrization(layer, "weight", Normalised(normalise), unsafe=True)
    last = widths[-1] * 3 // 2
    generator, up = Generator(z_dim, last, size >> len(widths)), []  # (last, 7, 7) or (last, 8, 8)
    if channels == 1 and size <= 32:  # small and grey: made as squares of 2x2 pixels
        up += [nn.ConvTranspose2d(last, width, 4, stride=2, padding=1), Styled(width, scales=False), nn.ReLU()]
        up += [nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2), nn.Tanh()]  # (4, S/2, S/2), then (1, S, S)
    else:
        for wide, narrow in pairwise([last, *reversed(widths[:-1]), width // 2]):  # 1x1 first: fewer to upsample
            up += [nn.Conv2d(wide, narrow, 1), nn.Upsample(scale_factor=2, mode="bilinear")]
            up += [nn.Conv2d(narrow, narrow, 3, padding=1), Styled(narrow), nn.ReLU()]  # ..., (width / 2, S, S)
        up += [nn.Conv2d(narrow, channels, 3, padding=1), nn.Tanh()]  # (C, S, S)
    networks = generator.extend(up), nn.Sequential(*down)
    return tuple(network.to(memory_format=torch.channels_last) for network in networks)


class Generator(nn.Sequential):
    """It begins with a style, (N, STYLE), which it makes of the noise; `Styled` layers take it again."""

    def __init__(self, z_dim: int, channels: int, side: int):
        mapping = nn.Linear(z_dim, STYLE, bias=False)
        nn.init.orthogonal_(mapping.weight, gain=3.5)
        layers = [nn.Linear(STYLE, channels * side**2), nn.Unflatten(1, (-1, side, side))]
        super().__init__(mapping, *layers, nn.GroupNorm(channels // 8, channels), nn.ReLU())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Return images (N, C, S, S), given noise (N, z_dim)."""
        mapping, *layers = self
        features = style = nn.functional.layer_norm(mapping(z), [STYLE]).tanh()
        for layer in layers:
            features = layer(features, style) if isinstance(layer, Styled) else layer(features)
        return features


class Styled(nn.GroupNorm):
    """Group normalisation, which removes the mean colour; then the style shifts, or scales and shifts, each channel."""

    def __init__(self, channels: int, scales: bool = True):
        super().__init__(channels // 8, channels, affine=False)
        self.change = nn.Linear(STYLE, channels * (1 + scales))

    def forward(self, features: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Return features (N, channels, H, W), given such features and styles (N, STYLE)."""
        *scale, shift = self.change(style)[..., None, None].split(features.shape[1], dim=1)
        features = super().forward(features)
        return torch.addcmul(shift, features, 1 + scale[0]) if scale else features + shift


class Normalised(nn.Module):
    """Weight normalisation (Salimans and Kingma, 2016) with one norm for the layer, which does not learn."""

    def __init__(self, root_mean_square: float = 1):
        super().__init__()
        self.root_mean_square = root_mean_square  # of the singular values of the weight, a matrix of a row an output

    def extra_repr(self) -> str:
        """Return what the text of a network says of it."""
        return f"{self.root_mean_square}"

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the normalised weight, of the same shape."""
        norm = self.root_mean_square * min(len(weight), weight[0].numel()) ** 0.5
        return weight * (norm / torch.linalg.vector_norm(weight))


MODELS = {"conv": conv, "wide": partial(conv, width=32), "mlp": mlp}
