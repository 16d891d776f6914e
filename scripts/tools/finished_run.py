"""A finished run: the generators in its checkpoint, which is not trusted, and images from them."""

import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
import tyro
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from typeguard import CollectionCheckStrategy, check_type

from common.board import note_layers
from common.checkpoint import load_checkpoint
from common.conditional import conditional
from common.cyclegan_models import resnet_generator
from common.data import to_uint8
from common.errors import BadInput, as_bad_input
from common.models import MODELS
from common.options import Options

HINT = "name the function of its script that makes them, --networks FILE:FUNCTION"
TYPES = {"data_types": list[str], "classes": list[list[str]], "averages": dict[str, str], "image_checksums": list}
CHUNK = 256  # images per forward pass, so that any count fits into memory


@dataclass(frozen=True)
class GeneratorOptions(Options):
    """Which generator, and what computes its images."""

    run: tyro.conf.Positional[Path]  # Folder of the run, or its checkpoint.pt.
    networks: str | None = None
    """FILE:FUNCTION, executed, that makes the networks of a script that has its own: (image_shape, z_dim), with labels
    (image_shape, z_dim, classes), to (generator, discriminator). None takes those that --model named."""
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.run if self.run.is_dir() else self.run.parent


def class_names(checkpoint: dict) -> list[str]:
    """Return the names of the classes that the run's networks take, or none."""
    return (checkpoint.get("classes") or [[]])[0]


def find_average(checkpoint: dict, name: str = "generator") -> str | None:
    """Return the entry of a checkpoint that is the average of the network called `name`, or None."""
    return checkpoint.get("averages", {}).get(name)


def make_own_networks(name: str, *given: tuple[int, int, int] | int) -> tuple[nn.Module, nn.Module]:
    """Return the generator and the discriminator that `FILE:FUNCTION` makes; raises BadInput if that fails.

    given: image_shape, z_dim, and the number of classes if there are any. FILE is executed, but not as `__main__`.
    """
    file, _, function = name.rpartition(":")
    if not file or not function:
        raise BadInput(f"--networks {name}: must be FILE:FUNCTION, as in scripts/gan_mine.py:make_networks")
    sys.path.insert(0, str(Path(file).resolve().parent))  # for imports of modules in the same folder
    try:
        module = sys.modules["<run_path>"] = ModuleType("<run_path>")  # where annotations that are text are looked up
        vars(module).update(runpy.run_path(file))
        if not hasattr(module, function):
            raise NameError(f"{file} has no function {function}")
        networks = getattr(module, function)(*given)
        if not isinstance(networks, tuple | list):
            raise TypeError(f"must return (generator, discriminator), not a {type(networks).__name__}")
        generator, discriminator = networks
    except (Exception, SystemExit) as error:
        call = f"{name}({', '.join(map(str, given))})"
        raise BadInput(f"--networks {call}: {type(error).__name__}: {error}") from error
    return generator, discriminator


def with_advice(subject: str, generator: nn.Module, z: Tensor) -> str:
    """Return `subject`, and what to do if the generator takes z (N, z_dim, 1, 1), as that of DCGAN does."""
    with suppress(Exception), torch.no_grad():
        generator(z[:2, :, None, None])
        return f"{subject}; z is (N, {z.shape[1]}): begin the generator with nn.Unflatten(1, ({z.shape[1]}, 1, 1))"
    return subject


def load_generator(
    run: str | Path, networks: str | None = None, weights: str = "average", checkpoint: dict | None = None
) -> nn.Module:
    """Return the generator of a run, a folder or its checkpoint.pt, in evaluation mode on the CPU.

    It takes noise (N, z_dim), and labels (N,) if it takes the class, to images (N, C, H, W) in [-1, 1]. weights:
    `average` for the moving average, if the run has one, `last` for those after the last step. networks: as the option;
    None: those of its option `model`, or `conv`. checkpoint: if it is loaded; the generator may have its tensors.
    Raises BadInput for other runs.
    """
    checkpoint = checkpoint or load_checkpoint(Path(run))
    if {"a_to_b", "b_to_a"} <= checkpoint.keys():  # a CycleGAN, whatever the name of its script
        raise BadInput(f"{run}: a CycleGAN takes no noise; scripts/tools/translate.py translates with it")
    with as_bad_input(f"{run}: not a run of one generator that takes z", Exception):
        for name, kind in TYPES.items():
            check_type(checkpoint.get(name, kind()), kind, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
        if not checkpoint["data_shapes"]:
            raise ValueError("it stores no shape of its data; its script must give them to run.steps")
        if not isinstance(checkpoint["options"].get("z_dim"), int):
            raise ValueError("it stores no length of the noise; its script must have an option z_dim")
        names, model = class_names(checkpoint), checkpoint["options"].get("model", "conv")
        given = [tuple(checkpoint["data_shapes"][0][1:]), checkpoint["options"]["z_dim"]]
        given += [len(names)] if names else []
        if networks is not None:
            make, maker, device = partial(make_own_networks, networks), f"--networks {networks}", "cpu"
        elif model in MODELS and len(given[0]) == 3:
            make, device = partial(conditional, model) if names else MODELS[model], "meta"
            maker = f"common/models.py, which may have changed; for networks of its own, {HINT}"
            maker += "; as its data have labels, the generator takes (z, labels)" if names else ""
        else:
            raise BadInput(f"{run}: made with networks that common/models.py does not have: {HINT}")
        return load_network(checkpoint, run, "generator", weights, lambda: make(*given)[0], maker, device)


def load_translator(run: Path, checkpoint: dict, direction: str) -> nn.Module:
    """Return the generator of a CycleGAN run, `a-to-b` or `b-to-a`, as `load_generator` does: its average, if any."""
    if not {"a_to_b", "b_to_a"} <= checkpoint.keys():
        raise BadInput(f"{run}: a run of {checkpoint['script']}.py; name one of cyclegan.py")
    with as_bad_input(f"{run}: not a run of a CycleGAN", Exception):
        channels = checkpoint["data_shapes"][0][1]
        if checkpoint["options"]["blocks"] > 100:  # in a damaged file; so many would take all memory
            raise ValueError(f"--blocks {checkpoint['options']['blocks']}: must be at most 100")
        make = partial(resnet_generator, channels, checkpoint["options"]["width"], checkpoint["options"]["blocks"])
        name, maker = direction.replace("-", "_"), "common/cyclegan_models.py"
        return load_network(checkpoint, run, name, "average", make, maker, "meta")


def load_network(
    checkpoint: dict, run: object, name: str, weights: str, make: Callable, maker: str, device: str = "cpu"
) -> nn.Module:
    """Return the network that `make` makes, with the weights called `name`, or for `average` their average, if any.

    device: where it is made; `meta`, for one all of whose tensors a checkpoint has, so that options for a huge network
    allocate no memory. Raises BadInput where the checkpoint of `run` has no such weights, or they do not fit what the
    `maker`, a text, makes.
    """
    if weights not in ("average", "last"):
        raise BadInput(f"weights must be 'average' or 'last', not {weights!r}")
    average = find_average(checkpoint, name) if weights == "average" else None
    if (average or name) not in checkpoint:
        raise BadInput(f"{run}: holds no network called {average or name}; a script must have it in `state`")
    with as_bad_input(f"{run}: its {average or name} does not hold this network, of {maker}", Exception):
        with torch.device(device):
            network = holder = make()
        if average:  # its names are those in an AveragedModel, which would make a copy
            holder = AveragedModel(nn.Identity())
            holder.module = network
        weights = checkpoint[average or name]
        if any("_orig_mod." in key for key in weights):  # of what torch.compile() returned
            weights = {key.replace("_orig_mod.", ""): weight for key, weight in weights.items()}
        # A network of one's own may hold a weight in other places, too: there it is to stay the same tensor.
        holder.load_state_dict(weights, assign=device == "meta")
        note_layers(checkpoint.get("layers"), {name: str(network)})
    return network.eval()


def generate(generator: nn.Module, device: torch.device, *inputs: Tensor, as_floats: bool = False) -> Tensor:
    """Return the generator's output for `inputs`, each (N, ...), computed on `device`: on the CPU, uint8 or floats."""
    generator.to(device)
    chunks = zip(*(part.to(device).split(CHUNK) for part in inputs), strict=True)
    subject = "the run's generator cannot make images of its z, and labels if any"
    with torch.no_grad(), as_bad_input(partial(with_advice, subject, generator, inputs[0].to(device)), Exception):
        outputs = (generator(*chunk) for chunk in chunks)
        return torch.cat([(output if as_floats else to_uint8(output)).cpu() for output in outputs])
