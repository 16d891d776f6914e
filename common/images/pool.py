"""A pool of past fakes for a discriminator, so that it does not forget what the generator made a while ago.

Shrivastava et al., "Learning from Simulated and Unsupervised Images through Adversarial Training" (2017), section 2.3,
one image at a time as CycleGAN has it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from common.run.ranks import Ranks


class ImagePool:
    """The last fakes and some older ones, at most `size`.

    Of the ranks that share a batch, each keeps the pool that one process would keep, of the fakes of all. For that the
    fakes travel: of 256x256 pixels in colour, 0.8 MB each, where the published generators' gradients take 91 MB.
    """

    def __init__(self, size: int = 50, ranks: Ranks | None = None, shape: Sequence[int] | None = None):
        """Begin empty. ranks: those that share the run's batches; by default this process alone.

        shape: (C, H, W), which a state to go on with must have; by default it may have any.
        """
        self.size, self.ranks, self.shape = size, ranks or Ranks(1), shape
        self.images: list[Tensor] = []

    def exchange(self, fakes: Tensor) -> Tensor:
        """Return what D learns from in place of `fakes`, and take them in; (N, C, H, W) in and out, detached.

        One after another, a fake is kept and returned while the pool fills; then, half of the time, it takes the place
        of one of the pool's images, which is returned. All that is drawn comes from torch's CPU generator, so that
        nothing waits for a GPU and every process of a run decides alike.
        """
        fakes = self.ranks.whole(fakes)
        swaps, places = torch.rand(len(fakes)) < 0.5, torch.randint(self.size, (len(fakes),))
        returned = []
        for fake, swap, place in zip(fakes, swaps.tolist(), places.tolist(), strict=True):
            if len(self.images) < self.size:
                self.images.append(fake.clone())  # the batch it is part of need not stay
            elif swap:
                fake, self.images[place] = self.images[place].to(fakes), fake.clone()
            returned.append(fake)
        return self.ranks.share(torch.stack(returned))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the images, (up to `size`, C, H, W), on the CPU, for a checkpoint."""
        return {"images": torch.stack([image.cpu() for image in self.images]) if self.images else torch.empty(0)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on with the images of a `state_dict`; raises ValueError for more than `size`, or others than `shape`."""
        images = state["images"]
        shape = tuple(self.shape or images.shape[1:])
        if len(images) > self.size or (len(images) and (images.ndim != 4 or images.shape[1:] != shape)):
            raise ValueError(f"{tuple(images.shape)} for a pool of {self.size} images of {shape}")
        self.images = list(images)
