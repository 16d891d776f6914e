"""Differentiable augmentation of what a discriminator sees: it keeps D from memorising few images.

Zhao et al., "Differentiable Augmentation for Data-Efficient GAN Training" (2020): brightness, saturation, contrast,
shift and cut-out, of real and fake images alike; and mirroring, for images that may be mirrored.
"""

import torch
from torch import Tensor, nn

NUMBERS = 8  # for each image: brightness, saturation, contrast, shift down and right, the cut's row and column, mirror


class Augmented(nn.Module):
    """A discriminator behind augmentation. It has the discriminator's weights, and no state beside them.

    Each call draws its numbers from torch's generator, so each pass of an image changes it in another way.
    """

    def __init__(self, discriminator: nn.Module, augment: bool = True, mirror: bool = False):
        super().__init__()
        self.discriminator, self.augment, self.mirror = discriminator, augment, mirror

    def forward(self, images: Tensor, *labels: Tensor) -> Tensor:
        """Return the logits of images (N, C, H, W) in [-1, 1]; if it changes them, raises ValueError for others."""
        if self.augment or self.mirror:
            if images.ndim != 4:  # of others, the draws would make other shapes
                raise ValueError(f"augmentation and mirroring are for images (N, C, H, W), not {[*images.shape]}")
            draws = torch.rand(len(images), NUMBERS, device=images.device)
        if self.mirror:
            images = torch.where(draws[:, 7, None, None, None] < 0.5, images, images.flip(3))
        if self.augment:
            images = change_colours(images.contiguous(), draws[:, :3])  # it is slow on channels_last
            images = shift_and_cut(images, draws[:, 3:7])
        return self.discriminator(images, *labels)


def change_colours(images: Tensor, draws: Tensor) -> Tensor:
    """Return images (N, C, H, W) with changes of brightness, saturation and contrast, by draws (N, 3) in [0, 1).

    Brightness adds up to 0.5 in either direction. Saturation multiplies a pixel's distance from its grey, the mean of
    its channels, by 0 to 2; contrast that from the mean of the image by 0.5 to 1.5.
    """
    brightness, saturation, contrast = draws.to(images)[..., None, None, None].unbind(1)
    images = images + (brightness - 0.5)
    images = torch.lerp(images.mean(1, keepdim=True), images, 2 * saturation)
    return torch.lerp(images.mean((1, 2, 3), keepdim=True), images, contrast + 0.5)


def shift_and_cut(images: Tensor, draws: Tensor) -> Tensor:
    """Return images (N, C, H, W), shifted by up to an eighth of a side and with a square cut out, by draws (N, 4).

    The square has half a side; part of it may lie outside. Uncovered and cut pixels become 0, grey.
    """
    sources, inside, cut = [], [], []  # of each position on a side, (N, side)
    for axis, side in enumerate(images.shape[2:]):
        shift, place = draws[:, axis, None], draws[:, 2 + axis, None]
        longest, length, position = (side + 4) // 8, (side + 1) // 2, torch.arange(side, device=draws.device)
        source = position + longest - (shift * (2 * longest + 1)).long()
        behind = position - (place * (side + 1 - length % 2)).long() + length // 2  # where the square begins
        sources.append(source % side)
        inside.append((source >= 0) & (source < side))
        cut.append((behind >= 0) & (behind < length))
    index = (sources[0][:, :, None] * images.shape[3] + sources[1][:, None]).flatten(1)[:, None]
    moved = images.flatten(2).gather(2, index.expand(-1, images.shape[1], -1)).view(images.shape)
    is_seen = inside[0][:, :, None] & inside[1][:, None] & ~(cut[0][:, :, None] & cut[1][:, None])
    return moved * is_seen[:, None]
