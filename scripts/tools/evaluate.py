"""Measure how good a finished run's images are, beside what a perfect generator would reach.

FID and KID are distances between features of the samples and of real images, 0 is best (Heusel et al. 2017, Binkowski
et al. 2018). Precision is the share of samples that lie among the real images, recall the share of real images that lie
among the samples (Kynkaanniemi et al. 2019). The features are those of a classifier of the data's classes, which also
says how many samples it is sure of, and the share of each class; of stacked digits it counts the 1,000 modes, and gives
the reverse KL divergence to those of the data, in place of the distances. Data without classes take Inception's. If the
networks are told a class, each sample has that of a real image; beside the recall of each class stands the share of
samples that the classifier takes for the class asked for. `lattice` is the share of the images' power at a period of
two pixels, that of the lattice which some networks leave. Each figure stands beside its floor, the same for other real
images in place of the samples; for fashion-mnist and cifar10 all real images are test images. Figures of different
features or counts are not comparable: FID falls as the count grows.

Prints the figures, and adds them to `evaluation.json` in the run, one entry for each settings and step, and to
TensorBoard, as the run `evaluation` in it: `quality/<settings>/fid` for the samples, `quality_floor/<settings>/fid` for
the floor. On the same machine the same settings give the same figures.

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
from filelock import FileLock
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter
from torch_fidelity.feature_extractor_inceptionv3 import URL_INCEPTION_V3, FeatureExtractorInceptionV3
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, short_path, write_whole
from common.conditional import LabeledImages, load_labeled_images
from common.data import DOWNLOADS, TORCHVISION, Images, load_images
from common.errors import BadInput, as_bad_input
from common.options import Range, Seed, launch
from common.run import pick_device
from scripts.tools.classifier import class_classifier, digit_classifier
from scripts.tools.finished_run import GeneratorOptions, class_names, generate, load_generator
from scripts.tools.modes import measure_modes
from scripts.tools.output import table

COUNT = 5000
STACKED_COUNT = 26_000  # as in Srivastava et al. (2017) and after
HELD_OUT = ("fashion-mnist", "cifar10")  # compared with their test images
DIGIT_DATASETS = ("mnist5k", "mnist", "stacked-digits")
NEIGHBOURS = 3  # nearest neighbours, for precision and recall
LEAST = 2 * (NEIGHBOURS + 1)  # real images: the floor needs two sets of them
settings_of = itemgetter("features", "count", "weights", "checkpoint", "seed", "step")  # of an entry


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the evaluation."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Number of samples, and of real images to compare them with. None takes 5,000, 26,000 of stacked digits, or half
    of a data set of fewer than 10,000: the floor needs as many other real images."""
    features: Literal["digits", "classes", "inception"] | None = None
    """What computes features: a classifier of digits; one of the data's classes, trained in a minute and kept; or
    Inception (some 90 MB, downloaded once). None is digits for mnist5k, mnist and stacked-digits, else classes if there
    are any, else Inception."""
    weights: Literal["average", "last"] = "average"
    """The moving average of the generator's weights that --ema keeps, or those after the last step."""
    seed: Seed = 0
    """Fixes the samples and the choice of real images."""


def load_inception(device: torch.device) -> Callable[[Tensor], Tensor]:
    """Return the function from uint8 images (N, C, H, W) to their features (N, 2048), float32 on the CPU.

    Raises BadInput if its weights are missing and cannot be downloaded.
    """
    try:
        inception = FeatureExtractorInceptionV3("inception-v3-compat", ["2048"]).to(device)
    except (OSError, RuntimeError) as error:
        raise BadInput(
            f"--features inception: its weights could not be downloaded ({error}); put {URL_INCEPTION_V3} "
            f"into {torch.hub.get_dir()}/checkpoints, or take images in a folder for each class"
        ) from error

    def features(images: Tensor) -> Tensor:
        with torch.no_grad():
            chunks = images.expand(-1, 3, -1, -1).split(64)
            return torch.cat([inception(chunk.to(device))[0].cpu() for chunk in chunks])

    return features


def measure_lattice(images: Tensor) -> float:
    """Return the share of power at a period of two pixels, of uint8 images (N, C, S, S): 0 to 1, a mean over images.

    The power is that of the mean over the channels, without its mean. Odena et al., "Deconvolution and Checkerboard
    Artifacts" (2016).
    """
    power = torch.fft.fft2(images.float().mean(1)).abs().square()
    half = images.shape[-1] // 2
    lattice = power[:, half].sum(1) + power[:, :, half].sum(1) - power[:, half, half]
    everything = power.sum((1, 2)) - power[:, 0, 0]
    return (lattice / everything.clamp(min=1e-9)).mean().item()


def measure_overlap(samples: Tensor, real: Tensor) -> dict[str, float]:
    """Return precision and recall of samples, given their features (N, D) and those of real images (M, D)."""
    figures = prc_features_to_metric(samples, real, prc_neighborhood=NEIGHBOURS, save_cpu_ram=True, verbose=False)
    return {name: figures[name] for name in ("precision", "recall")}


def measure_fid(samples: Tensor, real: Tensor) -> float:
    """Return the FID of samples, given their features (N, D) and those of real images."""
    statistics = map(fid_features_to_statistics, (samples, real))
    return fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"]


def measure_distances(samples: Tensor, real: Tensor, seed: int) -> dict[str, float]:
    """Return FID and KID of samples, given their features (N, D) and those of as many real images."""
    size, seed = min(1000, len(real)), seed % 2**32  # as many bits as NumPy takes
    kid = kid_features_to_metric(samples, real, kid_subset_size=size, rng_seed=seed, verbose=False)
    return {"fid": measure_fid(samples, real), "kid": kid["kernel_inception_distance_mean"]}


def load_real(dataset: str, size: int | None) -> tuple[Images, Tensor | None, tuple[str, ...]]:
    """Return real images to compare with, their labels if they have any, and the names of the classes.

    Raises BadInput where there are too few of them, or none.
    """
    try:
        data = load_labeled_images(dataset, size, held_out=dataset in HELD_OUT)
        images, labels, classes = data.images, data.labels, data.classes
    except BadInput:  # without labels, or no images at all, which is refused here
        images, labels, classes = load_images(dataset, size), None, ()
    if len(images) < LEAST:
        raise BadInput(f"{dataset}: has {len(images)} images, too few to judge samples by; take {LEAST} or more")
    return images, labels, classes


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
    """Add the figures of an entry to TensorBoard, as a run of their own: a newer file would hide a training's own."""
    with SummaryWriter(folder / "evaluation") as board:
        # TensorBoard opens the groups that are first in the alphabet: the pictures, not these.
        for group, part in (("quality", "samples"), ("quality_floor", "floor")):
            for name, figure in entry[part].items():
                board.add_scalar(f"{group}/{curve_name(entry)}/{name}", figure, entry["step"])


def evaluate_run(options: Options, only_fid: bool = False) -> dict:
    """Measure, add the figures to the run, and return their entry in its `evaluation.json`.

    only_fid: return the FID of the samples and the step alone, in a fifth of the time, and add nothing.
    """
    checkpoint = load_checkpoint(options.run)
    generator = load_generator(checkpoint, options, options.weights)
    with as_bad_input(f"{options.run}: not a run that can be sampled"):
        dataset, z_dim = os.fspath(checkpoint["options"]["dataset"]), checkpoint["options"]["z_dim"]
    device, path = pick_device(options.device), options.folder / "evaluation.json"
    stored_entries(path)  # before any work

    names, size = class_names(checkpoint), checkpoint["data_shapes"][0][-1]
    images, all_labels, classes = load_real(dataset, size)
    if names and names != list(classes):
        raise BadInput(f"{options.run}: the classes of {dataset} are not those of the run; use the same images")
    by_itself = "digits" if dataset in DIGIT_DATASETS else "classes" if classes else "inception"
    options = replace(options, features=options.features or by_itself)
    counts_modes = dataset == "stacked-digits" and options.features == "digits"
    half = len(images) // 2
    count = options.count or min(STACKED_COUNT if counts_modes else COUNT, half)
    if not NEIGHBOURS < count <= half:
        message = f"must be more than {NEIGHBOURS}, and at most half of {len(images)} real images"
        raise BadInput(f"--count {count}: {message}")
    judge = None
    if options.features == "digits":
        judge = digit_classifier()
    elif options.features == "classes":
        data = LabeledImages(images, all_labels, classes)
        judge = class_classifier(dataset, data, DOWNLOADS if dataset in TORCHVISION else options.folder)
    extract_features = judge.features if judge else load_inception(device)

    random = torch.Generator().manual_seed(options.seed)
    z, order = torch.randn(count, z_dim, generator=random), torch.randperm(len(images), generator=random)[: 2 * count]
    real, others = images[order].split(count)
    labels, other_labels = all_labels[order].split(count) if names else (None, None)
    real_features = None if counts_modes else extract_features(real)
    samples = generate(generator, device, z, *([labels] if names else []))
    if only_fid:
        return {"fid": measure_fid(extract_features(samples), real_features), "step": checkpoint["step"]}

    def measure(images: Tensor, of_class: Tensor | None) -> dict[str, float]:
        if counts_modes:
            return measure_modes(images) | {"lattice": measure_lattice(images)}
        features = extract_features(images)
        figures = measure_distances(features, real_features, options.seed) | measure_overlap(features, real_features)
        figures |= {"lattice": measure_lattice(images)} | (judge.measure(features) if judge else {})
        if judge and names:
            figures["of_their_class"] = (judge.classify(features)[1] == of_class).float().mean().item()
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
        "samples": measure(samples, labels),
        "floor": measure(others, other_labels),
    }
    if judge:
        entry |= {"classifier_accuracy": judge.accuracy, "held_out": judge.held_out}
    add_to_board(options.folder, entry)
    with FileLock(options.folder / ".evaluation.lock"):  # another evaluation may have ended meanwhile
        entries = stored_entries(path) | {settings_of(entry): entry}
        write_whole(path, json.dumps([*entries.values()], indent=2).encode())
    return entry


def report(entry: dict) -> str:
    """Return an entry of `evaluation.json` as text, with a table of its figures."""
    title = f"step {entry['step']}, {entry['weights']} weights, {entry['count']:,} images a side"
    title += f", features: {entry['features']}"
    if accuracy := entry.get("classifier_accuracy"):
        title += f" (the classifier's accuracy is {accuracy:.1%} on {entry['held_out']:,} held-out images)"
    rows = []
    for name, value in entry["samples"].items():
        style = {"fid": ".3f", "kid": ".5f", "lattice": ".2%", "modes": ",.0f", "reverse_kl": ".3f"}.get(name, ".1%")
        floor = entry["floor"].get(name)  # a class may have too few images on one side
        rows.append([name.replace("_", " "), f"{value:{style}}", "" if floor is None else f"{floor:{style}}"])
    return f"{title}\n\n{table(['', 'samples', 'real images'], rows)}"


def main(options: Options) -> None:
    """Measure, print the figures and add them to the run."""
    entry = evaluate_run(options)
    print(f"{report(entry)}\n\nWritten to {short_path(options.folder / 'evaluation.json')}")
    print(f"TensorBoard: quality/{curve_name(entry)}")


if __name__ == "__main__":
    launch(main, Options)
