"""Differentiable augmentation of what a discriminator sees: it keeps D from memorising few images.

Zhao et al., "Differentiable Augmentation for Data-Efficient GAN Training" (2020): brightness, saturation, contrast,
shift and cut-out, of real and fake images alike; and mirroring, for images that may be mirrored. It is a function of
the images and of eight uniform numbers for each: all passes of a step that take the same numbers see the same changes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

NUMBERS = 8  # for each image: brightness, saturation, contrast, shift down and right, the cut's row and column, mirror
SHIFT, CUT = 1 / 8, 1 / 2  # of a side: the longest shift, and the side of the square that is cut out


class Augmented(nn.Module):
    """A discriminator behind augmentation. It has the discriminator's weights, and no state beside them."""

    def __init__(self, discriminator: nn.Module, draw: Callable[[int], Tensor], augment: bool = True, mirror=False):
        # draw: from NUMBERS to numbers (N, NUMBERS), uniform in [0, 1), the same ones in all passes of a step.
        super().__init__()
        self.discriminator, self.draw, self.augment, self.mirror = discriminator, draw, augment, mirror

    def forward(self, images: Tensor, *labels: Tensor) -> Tensor:
        """Return the logits of images (M, C, H, W) in [-1, 1]. Image i has the numbers of row i, modulo N."""
        draws = self.draw(NUMBERS)
        draws = draws.repeat(-(-len(images) // len(draws)), 1)[: len(images)]
        if self.mirror:
            images = torch.where(draws[:, 7, None, None, None] < 0.5, images, images.flip(3))
        if self.augment:
            images = change_colours(images.contiguous(), draws[:, :3])  # which is slow in channels_last
            images = shift_and_cut(images, draws[:, 3:7])
        return self.discriminator(images, *labels)


def change_colours(images: Tensor, draws: Tensor) -> Tensor:
    """Return images (N, C, H, W) with changes of brightness, saturation and contrast, by draws (N, 3) in [0, 1).

    Brightness adds up to 0.5 in either direction. Saturation multiplies a pixel's distance from its grey, the mean of
    its channels, by 0 to 2; contrast that from the mean of the image by 0.5 to 1.5.
    """
    brightness, saturation, contrast = draws.to(images)[..., None, None, None].unbind(1)
    brightness, saturation, contrast = brightness - 0.5, 2 * saturation, contrast + 0.5
    grey = images.mean(1, keepdim=True)
    mean = grey.mean((2, 3), keepdim=True)
    # contrast * (saturated - mean) + mean + brightness, of saturated = saturation * (images - grey) + grey, in one pass
    rest = contrast * (1 - saturation) * grey + (1 - contrast) * mean + brightness
    return torch.addcmul(rest, images, contrast * saturation)


def shift_and_cut(images: Tensor, draws: Tensor) -> Tensor:
    """Return images (N, C, H, W), shifted by up to SHIFT of a side and with a square cut out, by draws (N, 4).

    What no pixel is shifted to, and what is cut out, is 0.
    """
    sources, insides, cuts = [], [], []
    for side, shift, place in zip(images.shape[2:], draws[:, :2].T, draws[:, 2:].T, strict=True):
        longest, cut = int(side * SHIFT + 0.5), int(side * CUT + 0.5)
        target = torch.arange(side, device=images.device)
        source = target + longest - (shift * (2 * longest + 1)).long()[:, None]  # (N, side)
        start = (place * (side + 1 - cut % 2)).long()[:, None] - cut // 2
        sources.append(source % side)
        insides.append((source >= 0) & (source < side))
        cuts.append((target >= start) & (target < start + cut))
    (rows, columns), (tall, wide), (high, broad) = sources, insides, cuts
    index = (rows[:, :, None] * images.shape[3] + columns[:, None]).flatten(1)[:, None]
    seen = tall[:, :, None] & wide[:, None] & ~(high[:, :, None] & broad[:, None])
    moved = images.flatten(2).gather(2, index.expand(-1, images.shape[1], -1)).view(images.shape)
    return moved * seen[:, None]
