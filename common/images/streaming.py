"""Images that do not fit in memory: threads read them from their files, a few batches ahead."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

THREADS = 4
BATCHES_AHEAD = 2  # per thread; memory use depends on this, the batch size and the image size alone


class StreamedImages:
    """Images that stay in their files, with the part of the interface of a uint8 tensor (N, C, H, W) that we use."""

    def __init__(self, paths: Sequence, shape: tuple[int, int, int], read: Callable[..., Tensor]):
        # shape: (C, H, W) of every image. read: returns the image of a path, uint8 of this shape, or raises BadInput.
        self.paths, self.read = paths, read
        self.shape = torch.Size([len(paths), *shape])
        self.device = torch.device("cpu")

    def __len__(self) -> int:
        return len(self.paths)

    def to(self, device: torch.device) -> "StreamedImages":
        """Set the device of the batches; returns itself."""
        self.device = device
        return self

    def batches(self, order: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield the images of each tensor of indices in `order`: uint8 (len(indices), C, H, W) on the device.

        order: at least one batch; it may be endless. Threads suffice: Pillow works without Python's lock. Raises
        BadInput for a file that cannot be read, at the step of its batch.
        """
        yield self.read_batch(next(order)).to(self.device)  # a single batch, for a picture, needs no threads
        threads, arriving = ThreadPoolExecutor(THREADS), deque()
        try:
            for indices in order:
                arriving.append(threads.submit(self.read_batch, indices))
                if len(arriving) == BATCHES_AHEAD * THREADS:
                    yield arriving.popleft().result().to(self.device, non_blocking=True)
            while arriving:
                yield arriving.popleft().result().to(self.device, non_blocking=True)
        finally:
            threads.shutdown(cancel_futures=True)

    def read_batch(self, indices: Tensor) -> Tensor:
        """Return the images of these indices, in pinned memory if they go to a GPU; raises BadInput."""
        images = torch.stack([self.read(self.paths[index]) for index in indices.tolist()])
        return images.pin_memory() if self.device.type == "cuda" else images
