"""Image files: found in a folder, read into one uint8 tensor that may be bigger than memory; and written."""

import io
import os
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor
from torchvision.transforms.v2.functional import to_pil_image
from torchvision.utils import make_grid
from tqdm import tqdm

from common.errors import BadInput, as_bad_input, counted, one_line

Fit = Literal["crop", "white", "black"]
KINDS = ".apng .avif .bmp .dib .gif .ico .jfif .jp2 .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tga .tif .tiff .webp"
IMAGE_SUFFIXES = tuple(suffix for suffix in KINDS.split() if suffix in Image.registered_extensions())  # by this Pillow
print_once = cache(print)
warnings.filterwarnings("ignore", module="PIL")  # which name no file, as that of a large image


def load_files(paths: list[str], image_size: int, mode: str | None = None, fit: Fit = "crop") -> Tensor:
    """Return image files as uint8 squares (N, C, image_size, image_size), as `map_images` and `read_image` do."""
    failures = []  # so that all are named at once

    def read(path: str) -> Tensor | None:
        try:
            return read_image(path, image_size, mode, fit)
        except BadInput as error:
            failures.append(str(error))

    def readable(images: Iterable[Tensor | None]) -> Iterator[Tensor]:
        yield from (image for image in images if image is not None)
        if failures:
            raise BadInput("; ".join(sorted(failures)))

    with ThreadPoolExecutor() as threads:  # which helps, as Pillow works without Python's lock
        images = threads.map(read, paths)
        return map_images(readable(tqdm(images, "reading images", len(paths), leave=False, delay=1, disable=None)))


def map_images(images: Iterable[Tensor]) -> Tensor:
    """Return images, uint8 (C, H, W) of one size or BadInput, mapped from a temporary file; grey is RGB beside RGB."""
    channels, shapes = 1, set()
    hint = f"{tempfile.gettempdir()}: cannot hold the pixels; set TMPDIR to another"
    for_pixels = partial(as_bad_input, hint, OSError)  # not for the errors of `images`
    with ExitStack() as opened:
        with for_pixels():
            file = opened.enter_context(tempfile.TemporaryFile(buffering=0))  # else closing would raise once more
        for number, image in enumerate(images):
            is_image = getattr(image, "dtype", None) is torch.uint8 and image.ndim == 3
            stored = image.expand(3, -1, -1) if is_image and len(image) == 1 else image
            shapes.add(is_image and stored.shape)
            if len(shapes) > 1 or not is_image:
                raise BadInput(f"map_images: image {number} is no uint8 tensor (C, H, W), or of another size; convert")
            channels = max(channels, len(image))
            left = stored.contiguous().numpy().tobytes()
            with for_pixels():
                while left:
                    left = left[file.write(left) :]  # raises without space, in which a mapping would crash
        if not shapes:
            raise BadInput("map_images: there are no images")
        with for_pixels():
            return torch.from_numpy(np.memmap(file, np.uint8, "c")).view(-1, *shapes.pop())[:, :channels]


def is_among(path: Path, images: str | Path | None) -> bool:
    """Return whether a place is in a folder of images, also by a link; False if that is no folder, or none."""
    folder = Path(images or os.devnull).resolve()
    return folder.is_dir() and path.resolve().is_relative_to(folder)


def image_paths(folder: str | Path, hold_out: bool = False) -> list[str]:
    """Return the sorted paths of image files below `folder`, or the `training_paths` among them; BadInput for none."""
    if not folder or not Path(folder).is_dir():  # Path("") is the current folder
        raise BadInput(f"{str(folder)!r}: neither a folder nor the name of a data set; name one, --dataset (--help)")
    files, failures = {}, []  # the files of each folder, which is read once
    for place, folders, names in os.walk(folder, followlinks=True, onerror=failures.append):
        real = os.path.realpath(place)
        folders[:] = sorted(name for name in folders if name[0] != "." and real not in files)
        files.setdefault(real, [f"{place}/{name}" for name in names if name[0] != "."])
    for error in failures:
        raise BadInput(f"{error.filename}: this folder cannot be read ({error.strerror}); make it readable or move it")
    paths = sorted(path for paths in files.values() for path in paths)
    images = [path for path in paths if path.lower().endswith(IMAGE_SUFFIXES)]
    if others := Counter(Path(path).suffix.lower() for path in paths if not path.lower().endswith(IMAGE_SUFFIXES)):
        counts = ", ".join(f"{count} {suffix or 'without a suffix'}" for suffix, count in others.most_common(5))
        line = f"{folder}: left out {others.total()} of {counted(len(paths), 'file')}: {counts}; convert images"
        print_once(one_line(line), file=sys.stderr)
    if not images:
        raise BadInput(f"{folder}: no images in it ({' '.join(IMAGE_SUFFIXES)})")
    return training_paths(images) if hold_out else images


def training_paths(paths: list[str]) -> list[str]:
    """Return the paths without a tenth, held out by their names without the suffix; all, if they are fewer than 500."""
    others = [path for path in paths if zlib.crc32(os.fsencode(Path(path).stem)) % 10]
    if len(paths) < 500 or len(others) <= len(paths) / 2:  # as where all have one name
        return paths
    if len(others) < 0.8 * len(paths):
        count = f"{len(paths) - len(others)} of {len(paths)} images, not a tenth"
        print_once(f"note: held out by their names: {count}, as many have one name: see --no-hold-out", file=sys.stderr)
    return others


def read_image(path: str | Path, image_size: int | None, mode: str | None = None, fit: Fit = "crop") -> Tensor:
    """Return one image file as uint8 (C, image_size, image_size): its first frame, upright, on white if transparent.

    image_size: of the square; None keeps (H, W). mode: `L` or `RGB`; None takes `L` if it is greyscale. fit: the
    middle square, or the whole image on a square of that colour.
    """
    with as_bad_input(f"{path} cannot be read as an image; mend or replace it", Exception):  # as Pillow raises any
        if not Path(path).is_file():
            raise ValueError("no regular file")  # a FIFO would be waited for
        with Image.open(path) as file:
            tags, is_deep = getattr(file, "tag_v2", {}), file.mode.startswith("I")  # of a TIFF; above 8 bits
            if file.mode == "F" or (file.mode == "I" and file.format not in ("PNG", "PPM")) or 2 in tags.get(339, ()):
                raise ValueError("its pixels are floating-point, 32-bit or signed, of a range that it does not tell")
            if is_deep and tags.get(262) == 0:
                raise ValueError("Pillow inverts 16-bit pixels of which 0 is white; save it with 0 as black")
            if file.format == "PNG" and "transparency" in file.info and file.tile[0][3] in ("L;2", "L;4", "RGB;16B"):
                raise ValueError("Pillow mistakes a transparent colour of 2 or 4 bits, or of 16 in RGB; save it with 8")
            mode = mode or ("L" if Image.getmodebase(file.mode) == "L" else "RGB")
            image = ImageOps.exif_transpose(file)
        if is_deep:  # 16 bits, at which convert() would clip
            pixels = np.array(image)
            grey = (pixels / 257).round().clip(0, 255).astype(np.uint8)
            image = Image.fromarray(np.where(pixels == image.info.get("transparency"), np.uint8(255), grey))
        if image.has_transparency_data:
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
        image = image.convert(mode)
        if image_size:
            size = image_size, image_size
            if fit != "crop" and max(image.size) >= 2 * image_size * min(image.size):
                raise ValueError(f"--fit {fit} would leave nothing of {image.width}x{image.height} pixels; cut it")
            image = ImageOps.fit(image, size) if fit == "crop" else ImageOps.pad(image, size, color=fit)
        return torch.from_numpy(np.array(image)).view(image.height, image.width, -1).permute(2, 0, 1)


def grid(images: Tensor, columns: int) -> Tensor:
    """Return uint8 images (N, C, H, W) as one picture (C, h, w) on the CPU; below 64 pixels at twice their size."""
    images = images.cpu()
    if images.shape[-1] < 64:
        images = images.repeat_interleave(2, -1).repeat_interleave(2, -2)
    return make_grid(images, nrow=columns)[: images.shape[1]]  # make_grid makes grey images RGB


def png(*pictures: Tensor) -> bytes:
    """Return pictures, uint8 (C, h, w), below one another as a PNG file; grey ones become RGB beside RGB."""
    channels, width = (max(picture.shape[side] for picture in pictures) for side in (0, 2))
    whole = torch.cat([F.pad(p.expand(channels, -1, -1), (0, width - p.shape[2])) for p in pictures], 1)
    file = io.BytesIO()
    to_pil_image(whole).save(file, "png", compress_level=3)
    return file.getvalue()
