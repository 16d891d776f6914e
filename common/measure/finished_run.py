"""The generators of a finished run, and the images that it draws."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from common.cyclegan_models import resnet_generator
from common.data import to_uint8
from common.models import MODELS
from common.run.checkpoint import load_network
from common.run.command_line import BadInput

CHUNK = 256  # images per forward pass, so that any count fits into memory


def translates(checkpoint: dict) -> bool:
    """Return whether the run was of a CycleGAN, by what its checkpoint holds: its script may have any name."""
    return "a_to_b" in checkpoint


def load_generator(checkpoint: dict, weights: str = "average") -> nn.Module:
    """Return the generator of a run with one generator and one discriminator, in evaluation mode, on the CPU.

    checkpoint: from `load_checkpoint`. weights: `average` for the moving average, if the run has one, `last` for those
    after the last step. Nobody vouches for what the checkpoint says of itself, so call it within `refusing`.
    """
    shape = checkpoint["data_shapes"][0][1:]
    model, z_dim = checkpoint["options"]["model"], checkpoint["options"]["z_dim"]
    if isinstance(model, str) and model not in MODELS:
        raise BadInput(f"made with the networks {model!r}, of which there are none in common/models.py")
    average = "average" if weights == "average" else None
    return with_weights(lambda: MODELS[model](shape, z_dim)[0], checkpoint, "generator", average)


def load_translator(checkpoint: dict, direction: str) -> nn.Module:
    """Return the generator of a CycleGAN run, `a-to-b` or `b-to-a`, as `load_generator` does: its average, if any."""
    options, channels = checkpoint["options"], checkpoint["data_shapes"][0][1]
    name = direction.replace("-", "_")
    make = partial(resnet_generator, channels, options["width"], options["blocks"])
    return with_weights(make, checkpoint, name, f"average_{name}")


def with_weights(make: Callable[[], nn.Module], checkpoint: dict, name: str, average: str | None) -> nn.Module:
    """Return the network that `make` makes, with the weights kept as `average`, or as `name` where there are none."""
    if average in checkpoint:
        return load_network(lambda: AveragedModel(make()), checkpoint[average]).eval()
    if name not in checkpoint:
        raise BadInput(f"holds no network called {name}; a script must give `run.keep` its networks by these names")
    return load_network(make, checkpoint[name]).eval()


def draw(generator: nn.Module, inputs: Tensor, device: torch.device) -> Tensor:
    """Return what the generator makes of `inputs` (N, ...), on `device`: uint8 (N, C, H, W) on the CPU."""
    generator.to(device)
    with torch.no_grad():
        return torch.cat([to_uint8(generator(chunk.to(device))).cpu() for chunk in inputs.split(CHUNK)])
