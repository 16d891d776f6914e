"""Image files: found in a folder, read as uint8 tensors, or streamed where they do not fit into memory."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from tqdm import tqdm

from common.errors import BadInput, refusing

IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
MEMORY_LIMIT = 64 * 2**20  # bytes of pixels; a bigger folder is streamed
THREADS, BATCHES_AHEAD = 4, 8  # memory use depends on these, the batch size and the image size alone


class StreamedImages:
    """Images that stay in their files, with the part of the interface of a uint8 tensor (N, C, H, W) that we use."""

    def __init__(self, paths: Sequence[str], shape: tuple[int, int, int], read: Callable[[str], Tensor]):
        # shape: (C, H, W) of every image. read: returns the image of a path, uint8 of this shape, or raises BadInput.
        self.paths, self.read, self.device = paths, read, torch.device("cpu")
        self.shape = torch.Size([len(paths), *shape])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: slice | Tensor) -> "StreamedImages | Tensor":
        """Return fewer images of the stream for a slice, the images themselves, in memory, for a tensor of indices."""
        if isinstance(rows, slice):
            return StreamedImages(self.paths[rows], self.shape[1:], self.read).to(self.device)
        return torch.cat(list(self.batches(iter(rows.split(64)))))

    def to(self, device: torch.device) -> "StreamedImages":
        """Set the device of the batches; returns itself."""
        self.device = device
        return self

    def batches(self, order: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield the images of each tensor of indices in `order`, which may be endless: uint8 (n, C, H, W).

        Threads read some batches ahead. Raises BadInput for a file that cannot be read, at the step of its batch.
        """
        yield self.read_batch(next(order)).to(self.device)  # a single batch, for a picture, needs no threads
        threads, arriving = ThreadPoolExecutor(THREADS), deque()  # they suffice: Pillow works without Python's lock
        try:
            for indices in order:
                arriving.append(threads.submit(self.read_batch, indices))
                if len(arriving) == BATCHES_AHEAD:
                    yield arriving.popleft().result().to(self.device, non_blocking=True)
            while arriving:
                yield arriving.popleft().result().to(self.device, non_blocking=True)
        finally:
            threads.shutdown(cancel_futures=True)

    def read_batch(self, indices: Tensor) -> Tensor:
        """Return the images of these indices, in pinned memory if they go to a GPU; raises BadInput."""
        images = [self.read(self.paths[index]) for index in indices.tolist()]
        for image in images:
            if image.dtype != torch.uint8 or image.shape != self.shape[1:]:
                raise BadInput(f"a stream's images are uint8 {[*self.shape[1:]]}, not {image.dtype} {[*image.shape]}")
        images = torch.stack(images)
        return images.pin_memory() if self.device.type == "cuda" else images


def load_folder(folder: Path, image_size: int, mode: str | None = None) -> Tensor | StreamedImages:
    """Return every image below `folder`, scaled and centre-cropped to squares, as uint8 (N, C, image_size, image_size).

    Sorted by path; more than MEMORY_LIMIT are streamed. mode: `L` for C 1, `RGB` for C 3; None makes C 1 if all are
    greyscale. Raises BadInput for no images and for a file that cannot be read, which a stream may meet later. Prints a
    line if 16 bits are nearly black, as where a camera or a scanner uses 12 of them.
    """
    paths = image_paths(folder)
    modes = [header_modes(path) for path in tqdm(paths, "checking images", leave=False, delay=1)]
    mode = mode or max(modes)[0]
    deep = [path for path, (_, own_mode) in zip(paths, modes, strict=True) if own_mode.startswith("I")]
    if deep and max(read_image(path, None).max() for path in deep[:: len(deep) // 8 + 1]) <= 16:  # of 255: 12 bits
        message = "its 16-bit images are nearly black, as if only 12 bits were used; scale them to 16"
        print(f"{folder}: {message}", file=sys.stderr)
    read = partial(read_image, image_size=image_size, mode=mode)
    images = StreamedImages(paths, (1 if mode == "L" else 3, image_size, image_size), read)
    return images if images.shape.numel() > MEMORY_LIMIT else images[torch.arange(len(paths))]


def image_paths(folder: Path) -> list[str]:
    """Return the sorted paths of the image files below `folder`, by suffix; raises BadInput for none.

    Links are followed, each folder is read once, and what is hidden is not.
    """
    paths, known = [], set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = sorted(name for name in folders if name[0] != "." and real not in known)
        if real not in known:
            paths += [f"{place}/{name}" for name in names if name[0] != "." and name.lower().endswith(IMAGE_SUFFIXES)]
        known.add(real)
    if not paths:
        raise BadInput(f"{folder}: no images in it ({' '.join(IMAGE_SUFFIXES)})")
    return sorted(paths)


def read_image(path: str | Path, image_size: int | None, mode: str | None = None) -> Tensor:
    """Return one image file as uint8 (C, image_size, image_size): its first frame, upright, on white if transparent.

    16 bits are scaled to 8; CMYK is converted without a colour profile. image_size: None keeps the image's own (H, W).
    mode: `L` for C 1, `RGB` for C 3; None takes `mode_of`. Raises BadInput for a file that cannot be read.
    """
    with refusing(f"{path} cannot be read as an image; mend or replace it"), Image.open(path) as file:
        own_mode = mode_of(file)
        image = on_white(file).convert(mode or own_mode)
        if image_size:
            image = ImageOps.fit(image, (image_size, image_size))
        return torch.from_numpy(np.array(image)).view(image.height, image.width, -1).permute(2, 0, 1)


def header_modes(path: str) -> tuple[str, str]:
    """Return `mode_of` an image and its own mode, from its header alone; raises BadInput for what cannot be used."""
    with refusing(f"{path} cannot be read as an image; mend or replace it"), Image.open(path) as file:
        return mode_of(file), file.mode


def mode_of(image: Image.Image) -> str:
    """Return the mode to use an image in: `L` for greyscale, `RGB` for others; ValueError for an unknown range."""
    if image.mode == "F" or (image.mode == "I" and image.format not in ("PNG", "PPM")):  # which have 16 bits at most
        raise ValueError("its pixels are floating-point, 32-bit or signed, of a range that the file does not tell")
    return "L" if Image.getmodebase(image.mode) == "L" else "RGB"


def on_white(file: Image.Image) -> Image.Image:
    """Return the image of a file in 8 bits, upright, on white if transparent."""
    if file.format == "PNG" and "transparency" in file.info:  # a colour, which Pillow does not scale as the pixels
        colour, depth = file.info["transparency"], file.tile[0][3]
        if depth == "RGB;16B":
            file.info["transparency"] = tuple(part >> 8 for part in colour)
        elif depth in ("L;2", "L;4"):
            file.info["transparency"] = colour * (85 if depth == "L;2" else 17)
    image = ImageOps.exif_transpose(file)
    if image.mode.startswith("I"):  # 16 bits, at which convert() would clip
        pixels = np.array(image)
        grey = (pixels / 257).round().clip(0, 255).astype(np.uint8)
        return Image.fromarray(np.where(pixels == image.info.get("transparency"), np.uint8(255), grey))
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA"))
    return image
