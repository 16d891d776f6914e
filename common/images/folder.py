"""A folder of images: read into memory, or streamed where it is big; and the class of each image."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from common.errors import BadInput
from common.images.files import IMAGE_SUFFIXES, check_headers, image_paths, read_image
from common.images.streaming import StreamedImages

MEMORY_LIMIT = 64 * 2**20  # bytes of pixels, at three channels; a bigger folder is streamed


def load_folder(folder: Path, image_size: int, mode: str | None = None) -> Tensor | StreamedImages:
    """Return every image below `folder`, scaled and centre-cropped to squares, as uint8 (N, C, image_size, image_size).

    Sorted by path. Up to MEMORY_LIMIT they are read into a tensor; a bigger folder is streamed. mode: `L` for C 1,
    `RGB` for C 3; None makes C 1 if all are greyscale, which a stream learns from the header of every file. Raises
    BadInput, naming the path, for an empty folder or a file that cannot be read, which a stream may meet later.
    """
    paths = image_paths(folder)
    if not paths:
        raise BadInput(f"--dataset {folder}: no images in it ({' '.join(IMAGE_SUFFIXES)})")
    if len(paths) * 3 * image_size**2 > MEMORY_LIMIT:
        mode = mode or ("L" if check_headers(paths) == {"L"} else "RGB")
        read = partial(read_image, image_size=image_size, mode=mode)
        return StreamedImages(paths, (1 if mode == "L" else 3, image_size, image_size), read)
    images = [read_image(path, image_size, mode) for path in paths]
    channels = max(len(image) for image in images)
    return torch.stack([image.expand(channels, -1, -1) for image in images])


def folder_labels(folder: Path) -> tuple[Tensor, tuple[str, ...]]:
    """Return the class of every image that `load_folder` returns, int64 (N,), and the classes' names, sorted.

    A class is a folder in `folder`. Raises BadInput, naming the path, for an image that lies in none.
    """
    paths = [Path(path).relative_to(folder) for path in image_paths(folder)]
    for path in paths:
        if len(path.parts) == 1:
            message = f"{path} lies in no class's folder; labels take a folder of images for each class"
            raise BadInput(f"--dataset {folder}: {message}")
    classes = sorted({path.parts[0] for path in paths})
    numbers = {name: number for number, name in enumerate(classes)}
    return torch.tensor([numbers[path.parts[0]] for path in paths], dtype=torch.int64), tuple(classes)
