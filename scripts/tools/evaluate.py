"""Measure how good a finished run's images are, beside what a perfect generator would reach.

FID and KID are distances between features of the samples and of real images, 0 is best (Heusel et al. 2017, Binkowski
et al. 2018). Precision is the share of samples that lie among the real images, recall the share of real images that lie
among the samples (Kynkaanniemi et al. 2019). Features of digits also say which digits the samples are; of stacked
digits it counts the 1,000 modes, and gives the reverse KL divergence to those of the data, in place of the distances.
If the networks are told a class, each sample has that of a real image; beside the recall of each class stands the share
of samples that the classifier of digits takes for the class asked for. Each figure stands beside its floor, the same
for other real images in place of the samples. Figures of different features or counts are not comparable: FID falls as
the count grows.

Prints the figures, and adds them to `evaluation.json` in the run, one entry for each settings and step, and to
TensorBoard: `quality/<settings>/fid` for the samples, `quality_floor/<settings>/fid` for the floor. On the same
machine the same settings give the same figures.

    python scripts/tools/evaluate.py runs/gan_detach/20260101-120000
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter
from torch_fidelity.feature_extractor_inceptionv3 import URL_INCEPTION_V3, FeatureExtractorInceptionV3
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, short_path, write_whole
from common.conditional import load_labeled_images
from common.data import load_images
from common.errors import BadInput, refusing
from common.options import Range, Seed, launch
from common.run import pick_device
from scripts.tools import digit_classifier as digits
from scripts.tools.finished_run import GeneratorOptions, class_names, generate, is_cyclegan, load_generator
from scripts.tools.modes import measure_modes
from scripts.tools.output import table

COUNT = 5000
STACKED_COUNT = 26_000  # as in Srivastava et al. (2017) and after
DIGIT_DATASETS = ("mnist5k", "mnist", "stacked-digits")
NEIGHBOURS = 3  # nearest neighbours, for precision and recall
settings_of = itemgetter("features", "count", "weights", "checkpoint", "seed", "step")  # of an entry


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the evaluation."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Number of samples, and of real images to compare them with. None takes 5,000, 26,000 of stacked digits, or half
    of a data set of fewer than 10,000: the floor needs as many other real images."""
    features: Literal["inception", "digits"] | None = None
    """The network that computes features: Inception (some 90 MB, downloaded once), or a classifier of digits. None is
    digits for mnist5k, mnist and stacked-digits, Inception for all other data."""
    weights: Literal["average", "last"] = "average"
    """The moving average of the generator's weights that --ema keeps, or those after the last step."""
    seed: Seed = 0
    """Fixes the samples and the choice of real images."""


def make_extractor(features: str, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Return the function from uint8 images (N, C, H, W) to their features (N, D), float32 on the CPU.

    Raises BadInput if Inception's weights are missing and cannot be downloaded.
    """
    if features == "digits":
        layers = digits.digit_classifier()[0][:-1]
        return lambda images: layers(digits.as_digits(images))
    try:
        inception = FeatureExtractorInceptionV3("inception-v3-compat", ["2048"]).to(device)
    except (OSError, RuntimeError) as error:
        raise BadInput(
            f"--features inception: its weights could not be downloaded ({error}); put {URL_INCEPTION_V3} "
            f"into {torch.hub.get_dir()}/checkpoints, or take --features digits for a run on handwritten digits"
        ) from error
    return lambda images: inception(images.expand(-1, 3, -1, -1).to(device))[0].cpu()


def extract_features(images: Tensor, extractor: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the features (N, D) of all images, in batches."""
    with torch.no_grad():
        return torch.cat([extractor(part) for part in images.split(64)])


def measure_overlap(samples: Tensor, real: Tensor) -> dict[str, float]:
    """Return precision and recall of samples, given their features (N, D) and those of real images (M, D)."""
    figures = prc_features_to_metric(samples, real, prc_neighborhood=NEIGHBOURS, save_cpu_ram=True, verbose=False)
    return {name: figures[name] for name in ("precision", "recall")}


def measure_distances(samples: Tensor, real: Tensor, seed: int) -> dict[str, float]:
    """Return FID and KID of samples, given their features (N, D) and those of as many real images."""
    fid = fid_statistics_to_metric(*map(fid_features_to_statistics, (samples, real)), verbose=False)
    kid = kid_features_to_metric(samples, real, kid_subset_size=min(1000, len(real)), rng_seed=seed, verbose=False)
    return {"fid": fid["frechet_inception_distance"], "kid": kid["kernel_inception_distance_mean"]}


def curve_name(entry: dict) -> str:
    """Return the name of an evaluation's curves: features, count and weights, and the seed if it is not the default."""
    seed = f"-seed-{entry['seed']}" if entry["seed"] else ""
    return f"{entry['features']}-{entry['count']}-{entry['weights']}{seed}"


def stored_entries(path: Path) -> dict[tuple, dict]:
    """Return the entries of an `evaluation.json` by their settings; raises BadInput if it is something else."""
    try:
        return {settings_of(entry): entry for entry in json.loads(path.read_text())} if path.exists() else {}
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: was not written by evaluate.py; move it elsewhere") from error


def add_to_board(folder: Path, entry: dict) -> None:
    """Add the figures of an entry to TensorBoard."""
    with SummaryWriter(folder) as board:
        # TensorBoard opens the groups that are first in the alphabet: the pictures, not these.
        for group, part in (("quality", "samples"), ("quality_floor", "floor")):
            for name, figure in entry[part].items():
                board.add_scalar(f"{group}/{curve_name(entry)}/{name}", figure, entry["step"])


def evaluate_run(options: Options) -> dict:
    """Measure, add the figures to the run, and return their entry in its `evaluation.json`."""
    checkpoint = load_checkpoint(options.run)
    if is_cyclegan(checkpoint):
        raise BadInput(f"{options.run}: a CycleGAN translates images and takes no noise; see scripts/tools/sample.py")
    generator = load_generator(checkpoint, options, options.weights)
    with refusing(f"{options.run}: not a run that can be sampled"):
        dataset, z_dim = os.fspath(checkpoint["options"]["dataset"]), checkpoint["options"]["z_dim"]
    device, path = pick_device(options.device), options.folder / "evaluation.json"
    entries = stored_entries(path)

    names, size = class_names(checkpoint), checkpoint["data_shapes"][0][-1]
    data = load_labeled_images(dataset, size) if names else load_images(dataset, size)
    images = data.images if names else data
    if names and names != list(data.classes):
        raise BadInput(f"{options.run}: the classes of {dataset} are not those of the run; use the same images")
    options = replace(options, features=options.features or ("digits" if dataset in DIGIT_DATASETS else "inception"))
    counts_modes = dataset == "stacked-digits" and options.features == "digits"
    half = len(images) // 2
    count = options.count or min(STACKED_COUNT if counts_modes else COUNT, half)
    if not NEIGHBOURS < count <= half:
        message = f"must be more than {NEIGHBOURS}, and at most half of {len(images)} real images"
        raise BadInput(f"--count {count}: {message}")
    extractor = make_extractor(options.features, device)

    random = torch.Generator().manual_seed(options.seed)
    z, order = torch.randn(count, z_dim, generator=random), torch.randperm(len(images), generator=random)[: 2 * count]
    real, others = images[order].split(count)
    labels, other_labels = data.labels[order].split(count) if names else (None, None)
    real_features = None if counts_modes else extract_features(real, extractor)

    def measure(images: Tensor, of_class: Tensor | None) -> dict[str, float]:
        if counts_modes:
            return measure_modes(images)
        features = extract_features(images, extractor)
        figures = measure_distances(features, real_features, options.seed) | measure_overlap(features, real_features)
        if options.features == "digits":
            figures |= digits.measure_digits(images)
            if names:
                figures["of_their_class"] = (digits.classify(images)[1] == of_class).float().mean().item()
        for number, name in enumerate(names):
            part, real_part = features[of_class == number], real_features[labels == number]
            if min(len(part), len(real_part)) > NEIGHBOURS:
                figures[f"recall_of_{name}"] = measure_overlap(part, real_part)["recall"]
        return figures

    entry = {
        "features": options.features,
        "count": count,
        "weights": options.weights if "average" in checkpoint else "last",
        "checkpoint": "checkpoint.pt" if options.run.is_dir() else options.run.name,
        "seed": options.seed,
        "step": checkpoint["step"],
        "device": str(device),
        "samples": measure(generate(generator, device, z, *([labels] if names else [])), labels),
        "floor": measure(others, other_labels),
    }
    if options.features == "digits":
        entry["classifier_accuracy"] = digits.digit_classifier()[1]
    add_to_board(options.folder, entry)
    entries[settings_of(entry)] = entry
    write_whole(path, json.dumps([*entries.values()], indent=2).encode())
    return entry


def report(entry: dict) -> str:
    """Return an entry of `evaluation.json` as text, with a table of its figures."""
    title = f"step {entry['step']}, {entry['weights']} weights, {entry['count']:,} images a side"
    title += f", features: {entry['features']}"
    if accuracy := entry.get("classifier_accuracy"):
        title += f" (the classifier's accuracy is {accuracy:.1%} on 1,000 held-out digits)"
    rows = []
    for name, value in entry["samples"].items():
        style = {"fid": ".3f", "kid": ".5f", "modes": ",.0f", "reverse_kl": ".3f"}.get(name, ".1%")
        rows.append([name.replace("_", " "), f"{value:{style}}", f"{entry['floor'][name]:{style}}"])
    return f"{title}\n\n{table(['', 'samples', 'real images'], rows)}"


def main(options: Options) -> None:
    """Measure, print the figures and add them to the run."""
    entry = evaluate_run(options)
    print(f"{report(entry)}\n\nWritten to {short_path(options.folder / 'evaluation.json')}")
    print(f"TensorBoard: quality/{curve_name(entry)}")


if __name__ == "__main__":
    launch(main, Options)
