"""Images from a finished run.

Loads the run's checkpoint and lets its generator draw from new noise: a grid to look at, or an array to work with. A
CycleGAN run has no noise; its generator A to B translates images of domain A instead.

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

from common.checkpoint import load_checkpoint, load_network, refusing
from common.command_line import BadInput, launch
from common.data import load_domains, to_float, to_uint8
from common.models import MODELS, cyclegan_networks
from common.training_run import check_numbers, grid, pick_device, shown, write_whole

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


def draw(run: Path, count: int, seed: int, device: torch.device) -> Tensor:
    """Return `count` images of the run's generator as uint8 (N, C, H, W) on the CPU."""
    checkpoint = load_checkpoint(run)
    random = torch.Generator().manual_seed(seed)
    with refusing(run):
        options, shape = checkpoint["options"], checkpoint["data_shapes"][0][1:]
        if checkpoint["script"] == "cyclegan":
            sizes = options["width"], options["blocks"], options["halvings"]
            generator = load_network(lambda: cyclegan_networks(shape, *sizes)[0], checkpoint["a_to_b"])
            images = load_domains(options["dataset"], options["image_size"])[0]
            inputs = to_float(images[torch.randint(len(images), (count,), generator=random)])
        else:
            model, z_dim = MODELS[options["model"]], options["z_dim"]
            generator = load_network(lambda: AveragedModel(model(shape, z_dim)[0]), checkpoint["average"])
            inputs = torch.randn(count, z_dim, generator=random)
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
    images = draw(options.run, options.count, options.seed, device)
    if output.suffix == ".npz":
        write_whole(output, lambda file: np.savez_compressed(file, images=images.numpy()))
    else:
        picture = grid(to_float(images), columns=round(options.count**0.5))
        write_whole(output, lambda file: save_image(picture, file, format="png"))
    print(f"{options.count} images: {shown(output)}")


if __name__ == "__main__":
    launch(main, Options)
