"""A pool of past fakes for a discriminator, so that it does not forget what the generator made a while ago.

Shrivastava et al., "Learning from Simulated and Unsupervised Images through Adversarial Training" (2017), section 2.3,
one image at a time as CycleGAN has it.
"""

import torch
from torch import Tensor


class ImagePool:
    """The last fakes and some older ones, at most `size`."""

    def __init__(self, size: int = 50):
        """Begin empty."""
        self.size = size
        self.images: list[Tensor] = []

    def exchange(self, fakes: Tensor) -> Tensor:
        """Return what D learns from in place of `fakes`, and take them in; (N, C, H, W) in and out, detached.

        One after another, a fake is kept and returned while the pool fills; then, half of the time, it takes the place
        of one of the pool's images, which is returned. All that is drawn comes from torch's CPU generator, so that
        nothing waits for a GPU and every process of a run decides alike.
        """
        swaps, places = torch.rand(len(fakes)) < 0.5, torch.randint(self.size, (len(fakes),))
        returned = []
        for fake, swap, place in zip(fakes, swaps.tolist(), places.tolist(), strict=True):
            if len(self.images) < self.size:
                self.images.append(fake.clone())  # the batch it is part of need not stay
                returned.append(fake)
            elif swap:
                returned.append(self.images[place].to(fakes))
                self.images[place] = fake.clone()
            else:
                returned.append(fake)
        return torch.stack(returned)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the images, (up to `size`, C, H, W), for a checkpoint."""
        return {"images": torch.stack(self.images) if self.images else torch.empty(0)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on with the images of a `state_dict`, whatever their device; raises ValueError for more than `size`."""
        if len(state["images"]) > self.size:
            raise ValueError(f"{len(state['images'])} images for a pool of {self.size}")
        self.images = list(state["images"])
