"""Make new images with a finished run: a grid, an array or a folder of files.

Without --output they are written as a grid to samples.png in the run, which is replaced; nothing else ever is.

    python scripts/tools/sample.py runs/gan_detach/20260101-120000
    python scripts/tools/sample.py runs/gan_detach/20260101-120000 --interpolate 8
    python scripts/tools/sample.py runs/gan_detach/20260101-120000 --count 10000 --output images.npz
    python scripts/tools/sample.py runs/gan_detach/20260101-120000 --count 10000 --output images
    python scripts/tools/sample.py runs/gan_conditional/20260101-120000 --class 7
"""

import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, write_whole
from common.errors import BadInput
from common.image_files import grid, png
from common.options import Count, Range, Seed
from common.run import pick_device
from scripts.tools.finished_run import GeneratorOptions, class_names, generate, has_float_data, make_generator
from scripts.tools.output import check_new_file, launch


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the sampling."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Number of images. None: 64, or eight of every class."""
    of_class: Annotated[str, tyro.conf.arg(name="class")] = ""
    """The class to make images of, if the networks take one: its name, such as 7. Left out: every class, a column
    each, with the same noise along a row."""
    interpolate: Count | None = None
    """Images of a walk from one point of z to another, both ends included. Each walk is a row of the grid, so --count
    must be a multiple of it. None draws an independent z for every image."""
    seed: Seed = 0  # Fixes the noise.
    output: Path | None = None
    """A .png for a grid; an .npz with the keys `images`, uint8 (N, C, H, W), and `labels`, if any; or a new folder,
    for 000000.png, 000001.png, ... Must not exist. None writes samples.png in the run, and replaces it. A run whose
    data are floats takes an .npz alone, with the key `samples`, float32 (N, ...), in place of `images`."""


def draw_inputs(z_dim: int, names: list[str], options: Options) -> list[Tensor]:
    """Return what the generator takes: z (N, z_dim), and int64 labels (N,) if it takes one of the classes `names`."""
    if options.of_class not in ("", *names):
        message = f"has the classes {', '.join(names)}; name one" if names else "has no classes; leave it out"
        raise BadInput(f"--class {options.of_class}: the run {options.run} {message}")
    if names and not options.of_class:
        if options.interpolate:
            raise BadInput(f"--interpolate {options.interpolate}: takes one --class; name it")
        count = options.count or 8 * len(names)
        rows = draw_noise(math.ceil(count / len(names)), z_dim, options)
        return [rows.repeat_interleave(len(names), dim=0)[:count], torch.arange(count) % len(names)]
    z = draw_noise(options.count or 64, z_dim, options)
    return [z, torch.full((len(z),), names.index(options.of_class))] if names else [z]


def draw_noise(count: int, z_dim: int, options: Options) -> Tensor:
    """Return the z of every image, (count, z_dim), standard normal."""
    random = torch.Generator().manual_seed(options.seed)
    steps = options.interpolate
    if steps is None:
        return torch.randn(count, z_dim, generator=random)
    if steps < 2 or count % steps:
        raise BadInput(f"--interpolate {steps}: must be 2 or more and divide the --count of {count} images into rows")
    start, end = torch.randn(2, count // steps, 1, z_dim, generator=random, dtype=torch.float64)
    return walk(start, end, steps).flatten(0, 1).float()


def walk(start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Return `steps` points on an arc from each start to its end: (..., 1, z_dim) twice to (..., steps, z_dim).

    Halfway on a straight line the variance of z would be half of that in training. White, "Sampling Generative
    Networks" (2016), interpolates on a sphere instead. Two long noise vectors are nearly orthogonal; with an angle of
    exactly 90 degrees every point of the arc is standard normal.
    """
    angle = torch.linspace(0, math.pi / 2, steps, dtype=start.dtype)[:, None]
    return angle.cos() * start + angle.sin() * end


def main(options: Options) -> None:
    """Write the images and print where they are."""
    output = options.output or options.folder / "samples.png"
    if options.output:
        check_new_file(output, *([".png", ".npz"] if output.suffix else [""]))
    device = pick_device(options.device)
    checkpoint = load_checkpoint(options.run)
    generator = make_generator(checkpoint, options.run, options.networks)
    names, as_floats = class_names(checkpoint), has_float_data(checkpoint)
    if as_floats and output.suffix != ".npz":
        raise BadInput(f"--output {output}: the data of {options.run} are floats, not images; name a new .npz file")
    inputs = draw_inputs(checkpoint["options"]["z_dim"], names, options)
    images = generate(generator, device, *inputs, as_floats=as_floats)
    if not output.suffix:
        output.mkdir()
        for number, image in enumerate(images):
            (output / f"{number:06d}.png").write_bytes(png(image))
    elif output.suffix == ".npz":
        arrays = {"samples" if as_floats else "images": images.numpy()}
        arrays |= {"labels": inputs[1].numpy()} if names else {}
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        write_whole(output, file.getvalue())
    else:
        columns = len(names) if names and not options.of_class else round(len(images) ** 0.5)
        picture = grid(images, options.interpolate or columns)
        write_whole(output, png(picture))
    print(f"{len(images)} {'samples' if as_floats else 'images'}: {output}")


if __name__ == "__main__":
    launch(main, Options)
