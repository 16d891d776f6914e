"""Images from a finished run.

Loads the run's checkpoint and lets its generator draw from new noise: a grid to look at, or an array to work with. A
CycleGAN run has no noise; its generator A to B translates images of domain A that it was not trained on instead.

    python scripts/sample.py runs/gan_detach/20260101-120000
    python scripts/sample.py runs/gan_detach/20260101-120000 --count 10000 --output images.npz
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from torch import Tensor
from torch.optim.swa_utils import AveragedModel
from torchvision.utils import save_image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `common` is found from any folder

from common.command_line import BadInput, launch
from common.cyclegan_models import resnet_generator
from common.data import batches, to_float, to_uint8
from common.domains import load_domains
from common.models import MODELS
from common.training_run import check_numbers, grid, load_checkpoint, pick_device, shown, write_whole

CHUNK = 256  # images per forward pass, so that any count fits into memory


@dataclass(frozen=True)
class Options:
    """Options of the sampling."""

    run: tyro.conf.Positional[Path]
    """Folder of the run, or its checkpoint.pt."""
    count: int = 64
    """How many images."""
    seed: int = 0
    """Fixes the noise, or the choice of images to translate."""
    output: Path | None = None
    """A .png for a grid, or an .npz with the key `images`, uint8 (N, C, H, W). None makes samples.png in the run."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def draw(checkpoint: dict, count: int, seed: int, device: torch.device) -> Tensor:
    """Return `count` images of the run's generator as uint8 (N, C, H, W) on the CPU."""
    options, shape = checkpoint["options"], checkpoint["data_shapes"][0][1:]
    if checkpoint["script"] == "cyclegan":
        generator = AveragedModel(resnet_generator(shape[0], options["width"], options["blocks"]))
        generator.load_state_dict(checkpoint["average_a_to_b"])
        domains = load_domains(options["dataset"], options["image_size"], options["load_size"])
        inputs = next(batches(domains.test_a, count, seed))
    else:
        generator = AveragedModel(MODELS[options["model"]](shape, options["z_dim"])[0])
        generator.load_state_dict(checkpoint["average"])
        inputs = torch.randn(count, options["z_dim"], generator=torch.Generator().manual_seed(seed))
    generator.to(device).eval()
    with torch.no_grad():
        return torch.cat([to_uint8(generator(chunk.to(device))).cpu() for chunk in inputs.split(CHUNK)])


def main(options: Options) -> None:
    """Write the images and say where they are."""
    check_numbers(options)
    output = options.output or (options.run if options.run.is_dir() else options.run.parent) / "samples.png"
    if output.suffix not in (".png", ".npz"):
        raise BadInput(f"--output {output}: must end in .png for a grid or in .npz for an array")
    if not output.parent.is_dir():
        raise BadInput(f"--output {output}: there is no folder {output.parent}; make it first")
    device = pick_device(options.device)
    images = draw(load_checkpoint(options.run), options.count, options.seed, device)
    if output.suffix == ".npz":
        write_whole(output, lambda file: np.savez_compressed(file, images=images.numpy()))
    else:
        picture = grid(to_float(images), columns=round(options.count**0.5))
        write_whole(output, lambda file: save_image(picture, file, format="png"))
    print(f"{options.count} images: {shown(output)}")


if __name__ == "__main__":
    launch(main, Options)
