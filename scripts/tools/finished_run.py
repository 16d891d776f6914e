"""A finished run: the generators in its checkpoint, which is not trusted, and images from them."""

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import tyro
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from common.cyclegan_models import resnet_generator
from common.data import to_uint8
from common.errors import BadInput
from common.models import MODELS
from common.run.checkpoint import mismatch

Networks = Callable[[tuple[int, int, int], int], tuple[nn.Module, nn.Module]]
HINT = "name the function of its script that makes them, --networks FILE:FUNCTION"
CHUNK = 256  # images per forward pass, so that any count fits into memory


@dataclass(frozen=True)
class GeneratorOptions:
    """Which generator, and what computes its images."""

    run: tyro.conf.Positional[Path]
    """Folder of the run, or its checkpoint.pt."""
    networks: str | None = None
    """FILE:FUNCTION that makes the networks of a script that has its own, (image_shape, z_dim) -> (generator,
    discriminator), as those in common/models.py. FILE is executed. None takes those that --model named."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def is_cyclegan(checkpoint: dict) -> bool:
    """Return whether the run is one of CycleGAN, judged by what its checkpoint holds: its script may have any name."""
    return "a_to_b" in checkpoint


def import_networks(name: str) -> Networks:
    """Return the function `FILE:FUNCTION` that makes a pair of networks, as those in `MODELS` do.

    FILE is executed, but not as `__main__`. Raises BadInput if that fails or defines no such function; the returned
    function raises it if FUNCTION fails.
    """
    file, _, function = name.rpartition(":")
    if not file or not function:
        raise BadInput(f"--networks {name}: must be FILE:FUNCTION, as in scripts/gan_mine.py:make_networks")
    sys.path.append(str(Path(file).resolve().parent))  # for imports of modules in the same folder
    try:
        make = runpy.run_path(file).get(function)
    except Exception as error:
        raise BadInput(f"--networks {name}: {type(error).__name__}: {error}") from error
    if not callable(make):
        raise BadInput(f"--networks {name}: {file} has no function {function}")

    def make_networks(image_shape: tuple[int, int, int], z_dim: int) -> tuple[nn.Module, nn.Module]:
        try:
            with torch.device("cpu"):  # not `meta`, as in `load_network`: tensors that no checkpoint has would be lost
                generator, discriminator = make(image_shape, z_dim)
        except Exception as error:
            raise BadInput(f"--networks {name}: {type(error).__name__}: {error}") from error
        return generator, discriminator

    return make_networks


def load_generator(checkpoint: dict, weights: str = "average", networks: Networks | None = None) -> nn.Module:
    """Return the generator of a run with one generator and one discriminator, in evaluation mode, on the CPU.

    checkpoint: from `load_checkpoint`; call this within `refusing`. weights: `average` for the moving average, if the
    run has one, `last` for the weights after the last step. networks: makes the run's networks; None takes those of
    its option `model`, or `conv` for a script without that option, such as `gan_standalone.py`.
    """
    options, shape = checkpoint["options"], tuple(checkpoint["data_shapes"][0][1:])
    model = options.get("model", "conv")
    if not networks and model not in MODELS:
        raise BadInput(f"made with networks that common/models.py does not have: {HINT}")
    make = networks or MODELS[model]
    average = "average" if weights == "average" else None
    try:
        return load_network(checkpoint, "generator", average, lambda: make(shape, options["z_dim"])[0])
    except (BadInput, ValueError) as error:
        if networks:
            raise
        raise BadInput(f"{error}; if the run has networks of its own, {HINT}") from error


def load_translator(checkpoint: dict, direction: str) -> nn.Module:
    """Return the generator of a CycleGAN run, `a-to-b` or `b-to-a`, as `load_generator` does: its average, if any."""
    options, channels = checkpoint["options"], checkpoint["data_shapes"][0][1]
    name = direction.replace("-", "_")
    make = partial(resnet_generator, channels, options["width"], options["blocks"])
    return load_network(checkpoint, name, f"average_{name}", make)


def load_network(checkpoint: dict, name: str, average: str | None, make: Callable[[], nn.Module]) -> nn.Module:
    """Return the network that `make` makes, with the weights called `average`, or `name` if there is no average.

    It is made on the meta device, so that options for a huge network do not allocate memory. Raises BadInput where the
    checkpoint has no such weights or they do not fit.
    """
    averaged = average in checkpoint
    if not averaged and name not in checkpoint:
        raise BadInput(f"holds no network called {name}; a script must give `run.keep` its networks by these names")
    state = checkpoint[average if averaged else name]
    with torch.device("meta"):
        network = AveragedModel(make()) if averaged else make()
    if difference := mismatch(network, state):
        raise BadInput(f"the checkpoint does not hold this network: {difference}")
    network.load_state_dict(state, assign=True)
    return network.eval()


def generate(generator: nn.Module, inputs: Tensor, device: torch.device) -> Tensor:
    """Return the generator's output for `inputs` (N, ...), computed on `device`: uint8 (N, C, H, W) on the CPU."""
    generator.to(device)
    with torch.no_grad():
        return torch.cat([to_uint8(generator(chunk.to(device))).cpu() for chunk in inputs.split(CHUNK)])
