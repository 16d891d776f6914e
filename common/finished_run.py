"""The generators of a finished run, and the images that it draws."""

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from common.checkpoint import load_network
from common.cyclegan_models import resnet_generator
from common.data import to_uint8
from common.models import MODELS

CHUNK = 256  # images per forward pass, so that any count fits into memory


def load_generator(checkpoint: dict, weights: str = "average") -> nn.Module:
    """Return the generator of a run with one generator and one discriminator, in evaluation mode, on the CPU.

    checkpoint: from `load_checkpoint`. weights: `average` for the moving average, `last` for those after the last
    step. Nobody vouches for what the checkpoint says of itself, so call it within `refusing`.
    """
    shape = checkpoint["data_shapes"][0][1:]
    model, z_dim = MODELS[checkpoint["options"]["model"]], checkpoint["options"]["z_dim"]
    if weights == "last":
        return load_network(lambda: model(shape, z_dim)[0], checkpoint["generator"]).eval()
    return load_network(lambda: AveragedModel(model(shape, z_dim)[0]), checkpoint["average"]).eval()


def load_translator(checkpoint: dict, direction: str) -> nn.Module:
    """Return the averaged generator of a CycleGAN run, `a-to-b` or `b-to-a`, as `load_generator` does."""
    options, channels = checkpoint["options"], checkpoint["data_shapes"][0][1]
    return load_network(
        lambda: AveragedModel(resnet_generator(channels, options["width"], options["blocks"])),
        checkpoint[f"average_{direction.replace('-', '_')}"],
    ).eval()


def draw(generator: nn.Module, inputs: Tensor, device: torch.device) -> Tensor:
    """Return what the generator makes of `inputs` (N, ...), on `device`: uint8 (N, C, H, W) on the CPU."""
    generator.to(device)
    with torch.no_grad():
        return torch.cat([to_uint8(generator(chunk.to(device))).cpu() for chunk in inputs.split(CHUNK)])
