"""Image files: found in a folder, read as uint8 tensors, or streamed where they do not fit into memory; and written."""

import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor
from torchvision.transforms.v2.functional import to_pil_image
from torchvision.utils import make_grid
from tqdm import tqdm

from common.errors import BadInput, as_bad_input

KINDS = ".apng .avif .bmp .dib .gif .ico .jfif .jp2 .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tga .tif .tiff .webp"
IMAGE_SUFFIXES = tuple(suffix for suffix in KINDS.split() if suffix in Image.registered_extensions())  # by this Pillow
OTHERS = f"{KINDS} .arw .cr2 .cr3 .dng .eps .exr .hdr .heic .heif .icns .j2k .jpx .jxl .mpo .nef .psd .raw .svg".split()
MEMORY_LIMIT = 64 * 2**20  # bytes of pixels; a bigger folder is streamed
THREADS, BATCHES_AHEAD = 4, 8  # memory use depends on these, the batch size and the image size alone


class StreamedImages:
    """Images that stay in their files, with the part of the interface of a uint8 tensor (N, C, H, W) that we use."""

    dtype, device = torch.uint8, torch.device("cpu")

    def __init__(self, paths: Sequence, shape: tuple[int, int, int], read: Callable[..., Tensor]):
        # shape: (C, H, W) of every image. read: returns the image of a path, uint8 of this shape, or raises BadInput.
        self.paths, self.read, self.shape = paths, read, torch.Size([len(paths), *shape])

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
        """Yield uint8 (n, C, H, W) for each n indices in `order`, read ahead by threads; raises BadInput in turn."""
        yield self.read_batch(next(order)).to(self.device)  # a single batch, for a picture, needs no threads
        threads = ThreadPoolExecutor(THREADS)  # they suffice: Pillow works without Python's lock
        arriving = (threads.submit(self.read_batch, indices) for indices in order)
        ahead = deque(islice(arriving, BATCHES_AHEAD))
        try:
            while ahead:
                yield ahead.popleft().result().to(self.device, non_blocking=True)
                ahead.extend(islice(arriving, 1))
        finally:
            threads.shutdown(cancel_futures=True)

    def read_batch(self, indices: Tensor) -> Tensor:
        """Return the images of these indices, in pinned memory if they go to a GPU; raises BadInput."""
        images = torch.stack([self.read(self.paths[index]) for index in indices.tolist()])
        if images.dtype != self.dtype or images.shape[1:] != self.shape[1:]:
            raise BadInput(f"a stream's images are uint8 {[*self.shape[1:]]}, not {images.dtype} {[*images.shape[1:]]}")
        return images.pin_memory() if self.device.type == "cuda" else images


def load_files(paths: list[str], image_size: int, mode: str | None = None) -> Tensor | StreamedImages:
    """Return image files, cropped to squares, as uint8 (N, C, image_size, image_size), or a stream; as `read_image`."""
    usual_modes = set()
    for path in tqdm(paths, "checking images", leave=False, delay=1, disable=None):
        with opened(path) as (_, usual_mode):
            usual_modes.add(usual_mode)
    mode = mode or max(usual_modes)
    read = partial(read_image, image_size=image_size, mode=mode)
    images = StreamedImages(paths, (1 if mode == "L" else 3, image_size, image_size), read)
    return images[torch.arange(len(paths))] if images.shape.numel() <= MEMORY_LIMIT else images


def image_paths(folder: str | Path) -> list[str]:
    """Return the sorted paths of image files below `folder`, links followed, none hidden; raises BadInput for none."""
    if not folder or not Path(folder).is_dir():  # Path("") is the current folder
        raise BadInput(f"{str(folder)!r}: neither a folder nor the name of a data set; --help lists those")
    found, failures = {}, []  # found: the files of each folder, which is read once
    for place, folders, names in os.walk(folder, followlinks=True, onerror=failures.append):
        real = os.path.realpath(place)
        folders[:] = sorted(name for name in folders if name[0] != "." and real not in found)
        found.setdefault(real, [f"{place}/{name}" for name in names if name[0] != "."])
    for error in failures:
        raise BadInput(f"{error.filename}: this folder cannot be read ({error.strerror}); make it readable or move it")
    files = {path: Path(path).suffix.lower() for paths in found.values() for path in paths}
    paths = sorted(path for path, suffix in files.items() if suffix in IMAGE_SUFFIXES)
    if others := [suffix for suffix in files.values() if suffix in OTHERS and suffix not in IMAGE_SUFFIXES]:
        print(f"{folder}: {len(others)} files left out ({' '.join(sorted({*others}))}); convert them", file=sys.stderr)
    if not paths:
        raise BadInput(f"{folder}: no images in it ({' '.join(IMAGE_SUFFIXES)})")
    return paths


def read_image(path: str | Path, image_size: int | None, mode: str | None = None) -> Tensor:
    """Return one image file as uint8 (C, image_size, image_size): its first frame, upright, on white if transparent.

    image_size: of the middle square; None keeps (H, W). mode: `L` or `RGB`; None takes `L` if all are greyscale.
    """
    with opened(path) as (file, usual_mode):
        image = ImageOps.exif_transpose(file)
        if image.mode.startswith("I"):  # 16 bits, at which convert() would clip
            pixels = np.array(image)
            grey = (pixels / 257).round().clip(0, 255).astype(np.uint8)
            image = Image.fromarray(np.where(pixels == image.info.get("transparency"), np.uint8(255), grey))
        if image.has_transparency_data:
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
        image = image.convert(mode or usual_mode)
        if image_size:
            image = ImageOps.fit(image, (image_size, image_size))
        return torch.from_numpy(np.array(image)).view(image.height, image.width, -1).permute(2, 0, 1)


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[Image.Image, str]]:
    """Open an image file for a block, with the mode to use it in, `L` or `RGB`; raises BadInput, as for its errors."""
    with as_bad_input(f"{path} cannot be read as an image; mend or replace it"):
        if not Path(path).is_file():
            raise ValueError("no regular file")  # a FIFO would be waited for
        with Image.open(path) as file:
            if file.mode == "F" or (file.mode == "I" and file.format not in ("PNG", "PPM")):  # of 16 bits at most
                raise ValueError("its pixels are floating-point, 32-bit or signed, of a range that it does not tell")
            if file.format == "PNG" and "transparency" in file.info and file.tile[0][3] in ("L;2", "L;4", "RGB;16B"):
                raise ValueError("Pillow mistakes a transparent colour of 2 or 4 bits, or of 16 in RGB; save it with 8")
            yield file, "L" if Image.getmodebase(file.mode) == "L" else "RGB"


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
