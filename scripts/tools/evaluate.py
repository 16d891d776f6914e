"""How good a finished run's images are: FID, KID, precision and recall; of stacked digits, the modes.

Compares samples of the run's generator with images that it was trained on, by the features that a network computes:

    FID, KID     distance between the two sets of features (Heusel et al. 2017, Binkowski et al. 2018); 0 is best
    precision    share of the samples that lie among the real images (Kynkaanniemi et al. 2019)
    recall       share of the real images that lie among the samples

The network is Inception, or with `--features digits` a small classifier trained for this, which also says which digits
the samples are. Figures of different features, or of different counts, are not comparable: FID falls as the count
grows. So each figure is printed beside its floor: the same figure for other real images in place of the samples, as
many of them. A perfect generator reaches the floor.

Of stacked digits, 1,000 modes, it counts those among 26,000 samples, each channel being judged by the classifier of
digits, and gives the reverse KL divergence to the data's distribution of modes, in place of the distances.

    python scripts/tools/evaluate.py runs/gan_detach/20260101-120000

The figures are printed, and written to `evaluation.json` in the run, a list with an entry for each settings and step.
TensorBoard shows a curve for each settings, such as `digits-2000-average`: `evaluation/<settings>/fid` for the samples,
`evaluation_floor/<settings>/fid` for the floor. On the same machine the same settings give the same figures.
"""

import json
import os
import sys
import tempfile
import zlib
from contextlib import nullcontext
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from annotated_types import Ge, Le
from torch import Tensor
from torch.utils.data import Subset
from torch_fidelity import FeatureExtractorBase, calculate_metrics, register_feature_extractor
from torch_fidelity.feature_extractor_inceptionv3 import URL_INCEPTION_V3
from torchvision.transforms.v2.functional import resize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.data import DATASETS, to_float
from common.errors import BadInput
from common.images.load import load_images
from common.images.streaming import StreamedImages
from common.run.checkpoint import load_checkpoint, refusing
from common.run.command_line import launch
from common.run.folder import events, shown, write_whole
from common.run.markdown import table
from common.run.option_values import Seed, check_numbers
from common.run.options import pick_device
from scripts.tools.digit_classifier import digit_classifier
from scripts.tools.finished_run import draw, load_generator, networks_of, translates
from scripts.tools.modes import coverage, modes_of

COUNT = 5000
STACKED_COUNT = 26_000  # as in Srivastava et al. (2017) and after
DIGIT_DATASETS = ("mnist5k", "mnist", "stacked-digits")
NEIGHBOURS = 3  # nearest neighbours, for precision and recall
CONFIDENT = 0.9
METRICS = {
    "frechet_inception_distance": "fid",
    "kernel_inception_distance_mean": "kid",
    "precision": "precision",
    "recall": "recall",
}


@dataclass(frozen=True)
class Options:
    """Options of the evaluation."""

    run: tyro.conf.Positional[Path]
    """Folder of the run, or its checkpoint.pt."""
    count: Annotated[int, Ge(1), Le(10**7)] | None = None
    """Number of samples, and of real images to compare them with. None takes 5,000, 26,000 of stacked digits, or half
    of a data set of fewer than 10,000: the floor needs as many other real images."""
    features: Literal["inception", "digits"] | None = None
    """The network that computes features: Inception (some 90 MB, downloaded once), or a classifier of digits. None is
    digits for mnist5k, mnist and stacked-digits, Inception for all other data."""
    weights: Literal["average", "last"] = "average"
    """The moving average of the generator's weights that --ema keeps, or those after the last step."""
    dataset: str | None = None
    """Where the real images are. None takes the run's own --dataset."""
    seed: Seed = 0
    """Fixes the samples and the choice of real images."""
    networks: str | None = None
    """FILE:FUNCTION that makes the networks of a script that has its own, (image_shape, z_dim) -> (generator,
    discriminator), as those in common/models.py. FILE is executed. None takes those that --model named."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


class DigitFeatures(FeatureExtractorBase):
    """The digit classifier without its last layer, as a feature extractor of torch-fidelity."""

    def __init__(self, name: str, features: list[str], **_):
        """Take the classifier, which is trained on the first call in a process."""
        super().__init__(name, features)
        self.layers = digit_classifier()[0][:-1]

    @staticmethod
    def get_provided_features_list() -> tuple[str]:
        """Return the names of the features."""
        return ("128",)

    @staticmethod
    def get_default_feature_layer_for_metric(metric: str) -> str:
        """Return the name of the features for a metric."""
        return "128"

    def forward(self, images: Tensor) -> tuple[Tensor]:
        """Return the features (N, 128) of uint8 images (N, C, H, W)."""
        return (self.layers(as_digits(images)),)


register_feature_extractor("digits", DigitFeatures)
EXTRACTORS = {"digits": "digits", "inception": "inception-v3-compat"}


def as_digits(images: Tensor) -> Tensor:
    """Return uint8 images (N, C, H, W) as the classifier's input: floats (N, 1, 28, 28) in [-1, 1]."""
    return to_float(resize(images, [28, 28]).float().mean(1, keepdim=True))


def picked(images: Tensor | StreamedImages, indices: Tensor) -> Tensor:
    """Return the images at `indices`, uint8 (len(indices), C, H, W), read from their files if streamed."""
    if isinstance(images, StreamedImages):
        return torch.cat(list(images.batches(iter(indices.split(64)))))
    return images[indices]


def distances(images: Tensor, real: Tensor, options: Options, device: torch.device, cache: str) -> dict[str, float]:
    """Return FID, KID, precision and recall of `images` against as many `real` ones, both uint8 (N, C, H, W).

    cache: folder in which the features of `real` are kept for the next call.
    """
    if options.features == "inception":
        images, real = (part.expand(-1, 3, -1, -1) for part in (images, real))
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        found = calculate_metrics(
            input1=Subset(images, range(len(images))),
            input2=Subset(real, range(len(real))),
            input2_cache_name="real",
            cache_root=cache,
            feature_extractor=EXTRACTORS[options.features],
            fid=True,
            kid=True,
            prc=True,
            prc_neighborhood=NEIGHBOURS,
            kid_subset_size=min(1000, len(images)),
            rng_seed=options.seed,
            cuda=device.type == "cuda",
            save_cpu_ram=True,  # no worker processes: the images are in memory
            verbose=False,
        )
    return {name: found[key] for key, name in METRICS.items()}


def judged(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the classifier's confidence (N,) from 0 to 1, and the digit (N,) that it sees, of uint8 images."""
    with torch.no_grad():
        logits = torch.cat([digit_classifier()[0](as_digits(part)) for part in images.split(1000)])
    confidence, digit = logits.softmax(1).max(1)
    return confidence, digit


def modes_seen(images: Tensor) -> dict[str, float]:
    """Return what `coverage` does of stacked digits, uint8 (N, 3, H, W), and the share confident in all channels."""
    confidence, digits = (part.view(-1, 3) for part in judged(images.flatten(0, 1)[:, None]))
    confident = (confidence >= CONFIDENT).all(1).float().mean().item()
    return coverage(modes_of(digits)) | {"confident": confident}


def digits_seen(images: Tensor) -> dict[str, float]:
    """Return the share of images classified with a confidence of CONFIDENT or more, and the share of each digit."""
    confidence, digit = judged(images)
    shares = torch.bincount(digit, minlength=10) / len(images)
    confident = (confidence >= CONFIDENT).float().mean().item()
    return {"confident": confident} | {f"share_of_{kind}": share for kind, share in enumerate(shares.tolist())}


def fetch_inception() -> None:
    """Download the weights of Inception if they are missing; raises BadInput if that fails."""
    try:
        torch.hub.load_state_dict_from_url(URL_INCEPTION_V3, map_location="cpu")
    except (OSError, HTTPException, RuntimeError) as error:
        raise BadInput(
            f"--features inception: its weights could not be downloaded ({error}); put {URL_INCEPTION_V3} "
            f"into {torch.hub.get_dir()}/checkpoints, or take --features digits for a run on handwritten digits"
        ) from error


def cells(name: str, sample: float, floor: float) -> list[str]:
    """Return a figure's row: its name, the figure of the samples and that of the real images."""
    style = {"fid": ".3f", "kid": ".5f", "modes": ",.0f", "reverse_kl": ".3f"}.get(name, ".1%")
    title = name.upper() if name in ("fid", "kid") else name.replace("_", " ").replace("kl", "KL")
    return [title, f"{sample:{style}}", f"{floor:{style}}"]


def label(settings: dict[str, str | int], own_dataset: str) -> str:
    """Return the name of an evaluation's curves: features, count and weights, and settings that are not the default."""
    parts = [settings["features"], settings["count"], settings["weights"]]
    if settings["checkpoint"] != "checkpoint.pt":
        parts.append(settings["checkpoint"])
    if (dataset := settings["dataset"]) != own_dataset:
        path = Path(dataset)
        parts.append(f"{path.name}-{zlib.crc32(os.fsencode(path)):08x}" if path.is_absolute() else dataset)
    if settings["seed"]:
        parts.append(f"seed-{settings['seed']}")
    return "-".join(map(str, parts))


def located(dataset: str) -> str:
    """Return the name of a data set, or the absolute path of a folder."""
    return str(Path(dataset).resolve()) if dataset not in DATASETS else dataset


def earlier_evaluations(path: Path) -> list[dict]:
    """Return the entries of the `evaluation.json` at `path`; raises BadInput for a file that is something else."""
    try:
        found = json.loads(path.read_bytes()) if path.exists() else []
    except ValueError:
        found = None
    found = [found] if isinstance(found, dict) else found  # older files have a single evaluation
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise BadInput(f"{path}: holds no evaluations; move it away")
    return found


def main(options: Options) -> None:
    """Measure, print the figures and add them to the run."""
    check_numbers(options)
    if options.count is not None and options.count <= NEIGHBOURS:
        raise BadInput(f"--count {options.count}: must be at least {NEIGHBOURS + 1}")
    networks = networks_of(options.networks) if options.networks is not None else None
    checkpoint = load_checkpoint(options.run)
    if translates(checkpoint):
        raise BadInput(f"{options.run}: a CycleGAN translates images and takes no noise; see scripts/tools/sample.py")
    if "average" not in checkpoint:
        options = replace(options, weights="last")
    with refusing(options.run):
        generator, trained = load_generator(checkpoint, options.weights, networks), checkpoint["options"]
        own_dataset = os.fspath(trained["dataset"])
    folder, name = (options.run, "checkpoint.pt") if options.run.is_dir() else (options.run.parent, options.run.name)
    path = folder / "evaluation.json"
    earlier_evaluations(path)  # a bad file is refused now rather than at the end
    device = pick_device(options.device)
    dataset = own_dataset if options.dataset is None else options.dataset
    features = options.features or ("digits" if dataset in DIGIT_DATASETS else "inception")
    shape = tuple(checkpoint["data_shapes"][0][1:])
    images = load_images(dataset, shape[-1])
    if tuple(images.shape[1:]) != shape:
        raise BadInput(f"--dataset {dataset}: images of shape {tuple(images.shape[1:])}, where the run's are {shape}")
    most = len(images) // 2
    if most <= NEIGHBOURS:
        raise BadInput(f"--dataset {dataset}: needs at least {2 * NEIGHBOURS + 2} images, and has {len(images)}")
    counts_modes = dataset == "stacked-digits" and features == "digits"
    count = options.count or min(STACKED_COUNT if counts_modes else COUNT, most)
    if count > most:
        raise BadInput(f"--count {count}: must be at most half of the {len(images)} real images")
    if features == "inception":
        fetch_inception()
    options = replace(options, dataset=dataset, features=features, count=count)

    draws = torch.Generator().manual_seed(options.seed)
    samples = draw(generator, torch.randn(count, trained["z_dim"], generator=draws), device)
    real, others = picked(images, torch.randperm(len(images), generator=draws)[: 2 * count]).split(count)
    if counts_modes:
        found, floor = modes_seen(samples), modes_seen(others)
    else:
        with tempfile.TemporaryDirectory() as cache:
            found, floor = (distances(part, real, options, device, cache) for part in (samples, others))
    title = f"step {checkpoint['step']}, {options.weights} weights, {count:,} images a side, features: {features}"
    if features == "digits":
        accuracy = digit_classifier()[1]
        if not counts_modes:
            found, floor = found | digits_seen(samples), floor | digits_seen(others)
        title += f" (the classifier's accuracy is {accuracy:.1%} on 1,000 held-out digits)"
    rows = [cells(name, value, floor[name]) for name, value in found.items()]
    print(f"{title}\n\n{table(['', 'samples', 'real images'], rows)}\n")

    settings = {
        "features": features,
        "count": count,
        "weights": options.weights,
        "checkpoint": name,
        "dataset": located(dataset),
        "seed": options.seed,
    }
    curves = label(settings, located(own_dataset))
    settings["step"] = checkpoint["step"]
    entry = settings | {"device": str(device), "samples": found, "floor": floor}
    if features == "digits":
        entry["classifier_accuracy"] = accuracy
    earlier = earlier_evaluations(path)
    if entry not in earlier:  # else TensorBoard has these points already
        with events(folder, None) as board:
            for metric in found:
                board.add_scalar(f"evaluation/{curves}/{metric}", found[metric], checkpoint["step"])
                board.add_scalar(f"evaluation_floor/{curves}/{metric}", floor[metric], checkpoint["step"])
            board.flush()
    others = [one for one in earlier if any(one.get(key) != value for key, value in settings.items())]
    write_whole(path, lambda file: file.write(json.dumps([*others, entry], indent=2).encode()))
    print(f"Written to {shown(path)}\nTensorBoard: evaluation/{curves}")


if __name__ == "__main__":
    launch(main, Options)
