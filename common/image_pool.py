"""A pool of past fakes, so that the discriminator also learns from older fakes than those of the current step.

Shrivastava et al., "Learning from Simulated and Unsupervised Images through Adversarial Training" (2017), section 2.3,
one image at a time, as in the published CycleGAN.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class ImagePool:
    """At most `size` fakes, of the last step and of earlier ones.

    With several ranks, each rank gathers the fakes of all and keeps the pool that one process would keep.
    """

    def __init__(
        self,
        size: int = 50,
        ranks: Any = None,
        shape: Sequence[int] | None = None,
        generator: torch.Generator | None = None,
    ):
        # ranks: its `all_rows` and `local_rows` gather the fakes of all processes and return this one's; None is this
        # process alone. shape: (C, H, W) that the images of a loaded state must have; None allows any. generator: of
        # random numbers on the CPU, the same on all ranks; None is torch's own.
        self.size, self.ranks, self.shape, self.generator = size, ranks, shape, generator
        self.images: list[Tensor] = []

    def exchange(self, fakes: Tensor) -> Tensor:
        """Add `fakes` to the pool and return the images that D learns from; (N, C, H, W) in and out, detached.

        While the pool is not full, a fake is added and returned. After that, with probability 0.5, it replaces a random
        image of the pool, which is returned in its place. Random numbers of the CPU: nothing waits for the GPU.
        """
        fakes = self.ranks.all_rows(fakes) if self.ranks else fakes
        swaps = torch.rand(len(fakes), generator=self.generator) < 0.5
        places = torch.randint(self.size, (len(fakes),), generator=self.generator)
        images = []
        for fake, swap, place in zip(fakes, swaps.tolist(), places.tolist(), strict=True):
            if len(self.images) < self.size:
                self.images.append(fake.clone())  # a view would keep the memory of the whole batch
            elif swap:
                fake, self.images[place] = self.images[place].to(fakes), fake.clone()
            images.append(fake)
        return self.ranks.local_rows(torch.stack(images)) if self.ranks else torch.stack(images)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the images, (up to `size`, C, H, W), on the CPU, for a checkpoint."""
        return {"images": torch.stack([image.cpu() for image in self.images]) if self.images else torch.empty(0)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the images of a `state_dict`; raises ValueError for more than `size`, or for another shape."""
        images = state["images"]
        shape = tuple(self.shape or images.shape[1:])
        if len(images) > self.size or (len(images) and (images.ndim != 4 or images.shape[1:] != shape)):
            raise ValueError(f"{tuple(images.shape)} for a pool of {self.size} images of {shape}")
        self.images = list(images)
