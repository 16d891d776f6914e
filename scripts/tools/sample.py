"""Make new images with a finished run: a grid, an array or a folder of files.

Without --output they are written as a grid to samples.png in the run, which is replaced; nothing else ever is.

    python scripts/tools/sample.py runs/gan_detach/20260101-120000
    python scripts/tools/sample.py runs/gan_detach/20260101-120000 --count 10000 --output images.npz
    python scripts/tools/sample.py runs/gan_detach/20260101-120000 --count 10000 --output images
    python scripts/tools/sample.py runs/gan_conditional/20260101-120000 --class 7
"""

import io
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, write_whole
from common.errors import BadInput, as_stopped, counted, show_lines
from common.image_files import grid, png
from common.launch import pick_device
from common.options import Range, Seed
from scripts.tools.finished_run import GeneratorOptions, class_names, find_average, generate, load_generator
from scripts.tools.output import check_apart, check_new_file, launch


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the sampling."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Number of images. None: 64, or eight of every class."""
    of_class: Annotated[str, tyro.conf.arg(name="class")] = ""
    """The class to make images of, if the networks take one: its name, such as 7. Left out: every class, a column
    each, with the same noise along a row."""
    seed: Seed = 0  # Fixes the noise.
    output: Path | None = None
    """A .png for a grid; an .npz with the keys `images`, uint8 (N, C, H, W), and `labels`, if any; or a new folder,
    without a dot in its name, for 000000.png, 000001.png, ... Must not exist. None writes samples.png in the run, and
    replaces it. A run whose data are floats takes an .npz alone, with the key `samples`, float32 (N, ...), in place of
    `images`."""


def draw_inputs(z_dim: int, names: list[str], options: Options) -> list[Tensor]:
    """Return what the generator takes: z (N, z_dim), and int64 labels (N,) if it takes one of the classes `names`."""
    if options.of_class not in ("", *names):
        message = f"has the classes {', '.join(names)}; name one" if names else "has no classes; leave it out"
        raise BadInput(f"--class {options.of_class}: the run {options.run} {message}")
    random = torch.Generator().manual_seed(options.seed)
    if names and not options.of_class:
        count = options.count or 8 * len(names)
        rows = torch.randn(math.ceil(count / len(names)), z_dim, generator=random)
        return [rows.repeat_interleave(len(names), dim=0)[:count], torch.arange(count) % len(names)]
    z = torch.randn(options.count or 64, z_dim, generator=random)
    return [z, torch.full((len(z),), names.index(options.of_class))] if names else [z]


def main(options: Options) -> None:
    """Write the images and print where they are."""
    output = options.output or options.folder / "samples.png"
    if options.output:
        check_new_file(output, *([".png", ".npz"] if output.suffix else [""]))
    device, checkpoint = pick_device(options.device), load_checkpoint(options.run)
    check_apart(output, str(checkpoint["options"].get("dataset", "")))
    torch.manual_seed(options.seed)  # for a generator that draws noise of its own
    generator, names = load_generator(options.run, options.networks, checkpoint=checkpoint), class_names(checkpoint)
    as_floats = checkpoint.get("data_types", [])[:1] == ["float32"]  # older runs have no types
    if as_floats and output.suffix != ".npz":
        raise BadInput(f"--output {output}: the data of {options.run} are floats, not images; name a new .npz file")
    inputs = draw_inputs(checkpoint["options"]["z_dim"], names, options)
    images = generate(generator, device, *inputs, as_floats=as_floats)
    if output.suffix != ".npz" and images.shape[1] not in (1, 3):
        raise BadInput(f"--output {output}: images of {images.shape[1]} channels are no pictures; name a new .npz file")
    if not output.suffix:
        with as_stopped(output), tempfile.TemporaryDirectory(prefix=".", dir=output.parent) as folder:
            whole = Path(folder) / "whole"  # so that there are all files or none
            whole.mkdir()
            for number, image in enumerate(images):
                (whole / f"{number:06d}.png").write_bytes(png(image))
            whole.rename(output)
    elif output.suffix == ".npz":
        arrays = {"samples" if as_floats else "images": images.numpy()}
        arrays |= {"labels": inputs[1].numpy()} if names else {}
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        write_whole(output, file.getvalue())
    else:
        columns = len(names) if names and not options.of_class else round(len(images) ** 0.5)
        write_whole(output, png(grid(images, columns)))
    weights = "average" if find_average(checkpoint) else "last"
    shape, trained = [*images.shape[1:]], [*checkpoint["data_shapes"][0][1:]]
    note = "" if shape == trained else f"; they have the shape {shape}, and the run's data {trained}"
    show_lines(f"{counted(len(images), 'sample' if as_floats else 'image')}: {output} ({weights} weights){note}")


if __name__ == "__main__":
    launch(main, Options)
