"""Translate an image or a folder of images by a finished CycleGAN.

Images keep their size and name, and become greyscale or RGB as the run's images are. Of an animation or a file of
several pages the first is translated; transparent images are put on white. A folder is searched recursively. An image
that cannot be translated gets a line on stderr, and the exit status is 1.

    python scripts/tools/translate.py runs/cyclegan/20260101-120000 zebras --direction b-to-a --output horses
"""

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms.v2.functional import to_pil_image
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, write_whole
from common.data import to_float, to_uint8
from common.errors import BadInput, Stopped, as_bad_input, counted, one_line, show_lines
from common.image_files import IMAGE_SUFFIXES, image_paths, read_image
from common.launch import pick_device
from common.options import Options as BaseOptions
from scripts.tools.finished_run import load_translator
from scripts.tools.output import check_apart, launch


@dataclass(frozen=True)
class Options(BaseOptions):
    """Options of the translation."""

    run: tyro.conf.Positional[Path]  # Folder of the CycleGAN run, or its checkpoint.pt.
    input: tyro.conf.Positional[Path]  # An image, or a folder of images.
    output: Path  # Folder for the translated images, made if it is missing.
    direction: Literal["a-to-b", "b-to-a"] = "a-to-b"  # From which domain of the run to which.
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.


def translate(generator: nn.Module, image: Tensor) -> Tensor:
    """Return a translated image, uint8 (C, H, W) in and out, of any size.

    The network takes multiples of 4 pixels, at least 8: the image is padded by reflection on the right and at the
    bottom, and its translation is cropped.
    """
    _, height, width = image.shape
    missing = [(0, max(8, side + -side % 4) - side) for side in (height, width)]
    padded = torch.from_numpy(np.pad(image.numpy(), [(0, 0), *missing], mode="reflect"))  # may be wider than the image
    device = next(generator.parameters()).device
    with torch.no_grad():
        return to_uint8(generator(to_float(padded[None].to(device))))[0, :, :height, :width].cpu()


def list_targets(options: Options) -> dict[Path, Path]:
    """Return the files to translate, each with the file to write; raises BadInput for paths that cannot work."""
    if options.input.is_dir():
        folder, paths = options.input, [Path(path) for path in image_paths(options.input)]
    else:
        is_image = options.input.is_file() and options.input.suffix.lower() in IMAGE_SUFFIXES
        folder, paths = options.input.parent, [options.input] if is_image else []
    if not paths:
        raise BadInput(f"{options.input}: no image, and no folder with images in it ({' '.join(IMAGE_SUFFIXES)})")
    targets = {path: options.output / path.relative_to(folder) for path in paths}
    if existing := [target for target in targets.values() if os.path.lexists(target)]:
        there = f"{len(existing)} of {counted(len(targets), 'image')}, as {existing[0]}"
        raise BadInput(f"--output {options.output}: holds already {there}; choose another folder")
    return targets


def main(options: Options) -> None:
    """Translate the images one by one; name those that cannot be translated, and print where the others are."""
    device, checkpoint = pick_device(options.device), load_checkpoint(options.run)
    generator = load_translator(options.run, checkpoint, options.direction).to(device)
    for images in (options.input, str(checkpoint["options"].get("dataset", ""))):
        check_apart(options.output, images)
    targets, failures = list_targets(options), 0
    mode = "L" if checkpoint["data_shapes"][0][1] == 1 else "RGB"
    with as_bad_input(f"--output {options.output}: cannot be made a folder; choose another", OSError):
        options.output.mkdir(parents=True, exist_ok=True)
    for path, target in tqdm(targets.items(), desc="translating", unit="image", dynamic_ncols=True):
        try:
            image, file = read_image(path, None, mode), io.BytesIO()
            with as_bad_input(f"{path} cannot be translated", (OSError, ValueError, RuntimeError, MemoryError)):
                picture = to_pil_image(translate(generator, image))
                kind = Image.registered_extensions()[path.suffix.lower()]
                picture.save(file, kind, quality=95, sizes=[picture.size])  # of an icon
                if (size := Image.open(file).size) != picture.size:
                    raise ValueError(f"{kind} holds {size}, not {picture.size} pixels; save it as PNG")
                target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(target, file.getvalue())
        except BadInput as error:
            failures += 1
            tqdm.write(one_line(str(error)), sys.stderr)
    show_lines(f"{counted(len(targets) - failures, 'image')}: {options.output}")
    if failures:
        raise Stopped(f"{failures} of {counted(len(targets), 'image')} could not be translated; each has a line above")


if __name__ == "__main__":
    launch(main, Options)
