"""Pictures to look at: images side by side in a grid, as PNG."""

import io

from torch import Tensor


def grid(images: Tensor, columns: int) -> Tensor:
    """Return uint8 images (N, C, H, W) as one picture (C, h, w) on the CPU; below 64 pixels at twice their size."""
    from torchvision.utils import make_grid  # torchvision takes as long to load as torch

    images = images.cpu()
    if images.shape[-1] < 64:
        images = images.repeat_interleave(2, -1).repeat_interleave(2, -2)
    return make_grid(images, nrow=columns)[: images.shape[1]]  # make_grid makes grey images RGB


def png(picture: Tensor) -> bytes:
    """Return a picture, uint8 (C, h, w), as a PNG file."""
    from torchvision.transforms.v2.functional import to_pil_image  # as above

    file = io.BytesIO()
    to_pil_image(picture).save(file, "png", compress_level=3)
    return file.getvalue()
