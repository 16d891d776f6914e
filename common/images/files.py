"""Image files: found in a folder, checked by their headers, read as uint8 tensors."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from tqdm import tqdm

from common.errors import BadInput

IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
HEADER_THREADS = 16  # read headers at once, to hide the latency of a disk or a network


def image_paths(folder: Path) -> list[str]:
    """Return the sorted paths of the image files below `folder`, by suffix; raises BadInput if one cannot be listed."""

    def refuse(error: OSError) -> None:
        raise BadInput(f"{error.filename} cannot be listed ({error.strerror}); make it readable") from error

    paths = []
    for parent, _, names in os.walk(folder, onerror=refuse, followlinks=True):
        images = (name for name in names if name.lower().endswith(IMAGE_SUFFIXES))
        paths += [f"{parent}/{name}" for name in images if not name.startswith("._")]  # macOS's notes on a file
    return sorted(paths)


def check_headers(paths: list[str]) -> set[str]:
    """Return the modes, `L` and `RGB`, that the images' headers give; raises BadInput for a file that is no image."""
    chunks = [paths[start : start + 100] for start in range(0, len(paths), 100)]  # faster than a task for each file
    with ThreadPoolExecutor(HEADER_THREADS) as threads:
        modes = threads.map(lambda chunk: set(map(header_mode, chunk)), chunks)
        return set().union(*tqdm(modes, "checking images", len(chunks), unit="", unit_scale=100, leave=False, delay=1))


def header_mode(path: str) -> str:
    """Return the mode of an image, `L` or `RGB`, from its header alone."""
    with opened(path) as image:
        return mode_of(image)


def read_image(path: str | Path, image_size: int | None, mode: str | None = None) -> Tensor:
    """Return one image file as uint8 (C, image_size, image_size): its first frame, upright, on white if transparent.

    16 bits are scaled to 8; CMYK is converted without a colour profile. image_size: None keeps the image's own size,
    (C, H, W). mode: `L` for C 1, `RGB` for C 3; None keeps greyscale images greyscale and makes all others RGB. Raises
    BadInput if the file cannot be read.
    """
    with opened(path) as image:
        own_mode = mode_of(image)
        image = on_white(ImageOps.exif_transpose(image)).convert(mode or own_mode)
        if image_size:
            image = ImageOps.fit(image, (image_size, image_size))
    return torch.from_numpy(np.array(image)).view(image.height, image.width, -1).permute(2, 0, 1)


@contextmanager
def opened(path: str | Path) -> Iterator[Image.Image]:
    """Open an image; any error in opening it or in the block is raised as BadInput that names the path."""
    try:
        with Image.open(path) as image:
            yield image
    except Exception as error:  # for a broken file the decoders raise errors of any type
        raise BadInput(f"{path} cannot be read as an image ({error}); mend or replace it") from error


def mode_of(image: Image.Image) -> str:
    """Return the mode in which an image is used: `L` for greyscale, `RGB` for all others; ValueError for floats."""
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers, of a range that the file does not tell")
    return "L" if Image.getmodebase(image.mode) == "L" else "RGB"


def on_white(image: Image.Image) -> Image.Image:
    """Return the image in 8 bits, on white if transparent."""
    if image.mode.startswith("I"):  # 16 bits, at which convert() would clip
        return Image.fromarray((np.array(image) / 257).round().clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA"))
    return image
