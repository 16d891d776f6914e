"""CycleGAN's networks, in which no layer looks across the batch, its losses, and its pool of past fakes.

Zhu et al., "Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks" (2017), appendix 7.2. The
losses are those of Mao et al., "Least Squares Generative Adversarial Networks" (2017): 1 for real and 0 for fake.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


def cyclegan_networks(image_shape: tuple[int, int, int], width: int = 64, blocks: int = 9, halvings: int = 3) -> tuple:
    """Return CycleGAN's generators A to B and B to A and its discriminators of A and B; ValueError for other images."""
    channels, height, size = image_shape
    smallest = 3 * 2**halvings
    if height % 4 or size % 4 or min(height, size) < smallest:
        raise ValueError(f"with {halvings} halvings, CycleGAN takes multiples of 4 from {smallest} up, not {size}")
    generators = [resnet_generator(channels, width, blocks) for _ in range(2)]
    return *generators, *(patch_discriminator(channels, width, halvings) for _ in range(2))


def resnet_generator(channels: int, width: int = 64, blocks: int = 9) -> nn.Module:
    """Return CycleGAN's generator, for images (N, C, H, W), H and W multiples of 4; `width` channels at full size."""
    layers = [nn.ReflectionPad2d(3), nn.Conv2d(channels, width, 7), nn.InstanceNorm2d(width), nn.ReLU()]
    for narrow in (width, 2 * width):
        layers += [nn.Conv2d(narrow, 2 * narrow, 3, stride=2, padding=1), nn.InstanceNorm2d(2 * narrow), nn.ReLU()]
    layers += [ResidualBlock(4 * width) for _ in range(blocks)]
    for wide in (4 * width, 2 * width):
        up = nn.ConvTranspose2d(wide, wide // 2, 3, stride=2, padding=1, output_padding=1)
        layers += [up, nn.InstanceNorm2d(wide // 2), nn.ReLU()]
    layers += [nn.ReflectionPad2d(3), nn.Conv2d(width, channels, 7), nn.Tanh()]
    return nn.Sequential(*layers).apply(narrow_normal)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with instance normalisation beside the identity; (N, channels, H, W) in and out."""

    def __init__(self, channels: int):
        super().__init__()
        first = [nn.ReflectionPad2d(1), nn.Conv2d(channels, channels, 3), nn.InstanceNorm2d(channels), nn.ReLU()]
        second = [nn.ReflectionPad2d(1), nn.Conv2d(channels, channels, 3), nn.InstanceNorm2d(channels)]
        self.residual = nn.Sequential(*first, *second)

    def forward(self, images):
        """Return the images plus their residual."""
        return images + self.residual(images)


def patch_discriminator(channels: int, width: int = 64, halvings: int = 3) -> nn.Module:
    """Return CycleGAN's discriminator, images (N, C, H, W) to logits (N, 1, h, w), one for each overlapping patch.

    PatchGAN, Isola et al., "Image-to-Image Translation with Conditional Adversarial Networks" (2017). With 3 halvings
    a logit sees 70 x 70 pixels, with 2 it sees 34 x 34.
    """
    layers = [nn.Conv2d(channels, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
    widths = [width << min(halving, 3) for halving in range(halvings + 1)]
    for depth, (narrow, wide) in enumerate(pairwise(widths), start=1):
        stride = 2 if depth < halvings else 1
        layers += [nn.Conv2d(narrow, wide, 4, stride=stride, padding=1), nn.InstanceNorm2d(wide), nn.LeakyReLU(0.2)]
    layers += [nn.Conv2d(widths[-1], 1, 4, padding=1)]
    return nn.Sequential(*layers).apply(narrow_normal)


def narrow_normal(module: nn.Module) -> None:
    """Draw the weights of a convolution from N(0, 0.02) and clear its bias, as CycleGAN does."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
        nn.init.zeros_(module.bias)


def least_squares_discriminator_loss(real_logits: Tensor, fake_logits: Tensor) -> Tensor:
    """Mean of the two halves, `((D(x) - 1)^2 + D(G(z))^2) / 2`; logits of any shape in, a 0-d tensor out."""
    dtype = torch.promote_types(real_logits.dtype, torch.float32)  # squares of 16 bits are coarse
    return ((real_logits.to(dtype) - 1).square().mean() + fake_logits.to(dtype).square().mean()) / 2


def least_squares_generator_loss(fake_logits: Tensor) -> Tensor:
    """`(D(G(z)) - 1)^2`; logits of any shape in, a 0-d tensor out."""
    return (fake_logits.to(torch.promote_types(fake_logits.dtype, torch.float32)) - 1).square().mean()


class ImagePool:
    """At most `size` past fakes, so that a discriminator also learns from older ones than those of the step.

    Shrivastava et al., "Learning from Simulated and Unsupervised Images through Adversarial Training" (2017), section
    2.3, one image at a time, as in the published CycleGAN. With several ranks, each rank gathers the fakes of all and
    keeps the pool that one process would keep.
    """

    def __init__(self, size: int = 50, ranks: Any = None, generator: torch.Generator | None = None):
        # ranks: its `gather` collects the fakes of all processes, of which `rows` are this one's; None is this process
        # alone. generator: of random numbers on the CPU, the same on all ranks; None is torch's own.
        self.size, self.ranks, self.generator = size, ranks, generator
        self.images: list[Tensor] = []

    def exchange(self, fakes: Tensor) -> Tensor:
        """Add `fakes` to the pool and return the images that D learns from; (N, C, H, W) in and out, detached.

        While the pool is not full, a fake is added and returned. After that, with probability 0.5, it replaces a random
        image of the pool, which is returned in its place. Random numbers of the CPU: nothing waits for the GPU.
        """
        fakes = fakes.detach()
        if self.ranks and self.ranks.count > 1:
            fakes = torch.cat(self.ranks.gather(fakes.cpu())).to(fakes.device)
        swaps = torch.rand(len(fakes), generator=self.generator) < 0.5
        places = torch.randint(self.size, (len(fakes),), generator=self.generator)
        images = []
        for fake, swap, place in zip(fakes, swaps.tolist(), places.tolist(), strict=True):
            if len(self.images) < self.size:
                self.images.append(fake.clone())  # a view would keep the memory of the whole batch
            elif swap:
                fake, self.images[place] = self.images[place].to(fakes), fake.clone()
            images.append(fake)
        return torch.stack(images)[self.ranks.rows if self.ranks else slice(None)]

    def state_dict(self) -> dict[str, Tensor]:
        """Return the images, (up to `size`, C, H, W), on the CPU, for a checkpoint."""
        return {"images": torch.stack([image.cpu() for image in self.images]) if self.images else torch.empty(0)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the images of a `state_dict`; raises ValueError for more than `size`."""
        if len(state["images"]) > self.size:
            raise ValueError(f"{len(state['images'])} images for a pool of {self.size}")
        self.images = list(state["images"])
