"""The generator of a finished run, and the images that it draws."""

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from common.command_line import BadInput
from common.data import to_uint8
from common.models import MODELS

CHUNK = 256  # images per forward pass, so that any count fits into memory


def load_generator(checkpoint: dict, weights: str = "average") -> nn.Module:
    """Return the generator of a run with one generator and one discriminator, in evaluation mode, on the CPU.

    checkpoint: from `load_checkpoint`. weights: `average` for the moving average, `last` for those after the last
    step. Raises BadInput where the checkpoint's options and its weights do not belong together.
    """
    options, shape = checkpoint["options"], tuple(checkpoint["data_shapes"][0][1:])
    try:
        with torch.device("meta"):  # without memory, of which broken options could ask for any amount
            generator = MODELS[options["model"]](shape, options["z_dim"])[0]
            if weights == "average":
                generator = AveragedModel(generator)
        generator.load_state_dict(checkpoint["average" if weights == "average" else "generator"], assign=True)
    except Exception as error:  # what nobody vouches for can fail anywhere
        raise BadInput(f"the checkpoint does not hold the generator that its options describe ({error})") from error
    return generator.eval()


def draw(generator: nn.Module, inputs: Tensor, device: torch.device) -> Tensor:
    """Return what the generator makes of `inputs` (N, ...), on `device`: uint8 (N, C, H, W) on the CPU."""
    generator.to(device)
    with torch.no_grad():
        return torch.cat([to_uint8(generator(chunk.to(device))).cpu() for chunk in inputs.split(CHUNK)])
