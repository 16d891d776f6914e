"""A file or a folder of images through a finished CycleGAN.

Images of any size are translated at their own size, under their own names, and turned into the run's greyscale or
colour. A folder is searched recursively.

    python scripts/translate.py runs/cyclegan/20260101-120000 zebras --direction b-to-a --output horses
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms.v2.functional import to_pil_image
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `common` is found from any folder

from common.checkpoint import load_checkpoint, refusing
from common.command_line import BadInput, launch
from common.data import to_float, to_uint8
from common.finished_run import load_translator, translates
from common.image_files import IMAGE_SUFFIXES, image_paths, read_image
from common.run_folder import shown, write_whole
from common.run_options import pick_device


@dataclass(frozen=True)
class Options:
    """Options of the translation."""

    run: tyro.conf.Positional[Path]
    """Folder of the CycleGAN run, or its checkpoint.pt."""
    input: tyro.conf.Positional[Path]
    """An image, or a folder of images."""
    output: Path
    """Folder for the translated images, made if it is missing."""
    direction: Literal["a-to-b", "b-to-a"] = "a-to-b"
    """From which of the run's domains to which."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def translate(generator: nn.Module, image: Tensor) -> Tensor:
    """Return a translated image, uint8 (C, H, W) in and out, of any size.

    Reflected to the right and below up to multiples of 4 and at least 8 pixels, which is what the network takes; what
    is made of that is cut off again.
    """
    _, height, width = image.shape
    missing = [(0, max(8, side + -side % 4) - side) for side in (height, width)]
    padded = torch.from_numpy(np.pad(image.numpy(), [(0, 0), *missing], mode="reflect"))  # may be wider than the image
    device = next(generator.parameters()).device
    with torch.no_grad():
        return to_uint8(generator(to_float(padded[None].to(device))))[0, :, :height, :width].cpu()


def find(options: Options) -> dict[Path, Path]:
    """Return the files to translate and the file to write for each; raises BadInput where that cannot work."""
    folder = options.input if options.input.is_dir() else options.input.parent
    paths = map(Path, image_paths(folder)) if options.input.is_dir() else [options.input]
    targets = {path: options.output / path.relative_to(folder) for path in paths if path.is_file()}
    if not targets:
        raise BadInput(f"{options.input}: not found, or no images in it ({' '.join(IMAGE_SUFFIXES)})")
    output, folder = options.output.resolve(), folder.resolve()
    if output == folder or (options.input.is_dir() and output.is_relative_to(folder)):
        raise BadInput(f"--output {options.output}: lies in the folder of the input, {folder}; choose another")
    for path in targets:
        if path.suffix.lower() not in IMAGE_SUFFIXES:
            raise BadInput(f"{path}: no image that can be written again under its name ({' '.join(IMAGE_SUFFIXES)})")
    return targets


def main(options: Options) -> None:
    """Translate one image after another and say where they are."""
    checkpoint = load_checkpoint(options.run)
    if not translates(checkpoint):
        raise BadInput(f"{options.run}: a run of {checkpoint['script']}.py; name one of cyclegan.py")
    targets = find(options)
    with refusing(options.run):
        generator = load_translator(checkpoint, options.direction)
    generator.to(pick_device(options.device))
    mode = "L" if checkpoint["data_shapes"][0][1] == 1 else "RGB"

    for path, target in tqdm(targets.items(), desc="translating", unit="image", dynamic_ncols=True):
        image = to_pil_image(translate(generator, read_image(path, None, mode)))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, partial(image.save, format=Image.registered_extensions()[path.suffix.lower()]))
        except OSError as error:
            raise BadInput(f"--output {target}: cannot be written ({error.strerror or error})") from error
    print(f"{len(targets)} images: {shown(options.output)}")


if __name__ == "__main__":
    launch(main, Options)
