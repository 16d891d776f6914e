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
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le
from torch import Tensor
from torch.utils.data import Subset
from torch_fidelity import FeatureExtractorBase, calculate_metrics, register_feature_extractor
from torch_fidelity.feature_extractor_inceptionv3 import URL_INCEPTION_V3

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.data import LabeledImages
from common.errors import BadInput
from common.images.load import load_images, load_labeled_images
from common.images.streaming import StreamedImages
from common.run.board import events
from common.run.checkpoint import load_checkpoint, refusing
from common.run.command_line import launch
from common.run.folder import short_path, write_whole
from common.run.markdown import table
from common.run.option_values import Seed, checked
from common.run.options import pick_device
from scripts.tools import digit_classifier as digits
from scripts.tools.finished_run import GeneratorOptions, class_names, generate, is_cyclegan, load_generator
from scripts.tools.modes import measure_modes

COUNT = 5000
STACKED_COUNT = 26_000  # as in Srivastava et al. (2017) and after
DIGIT_DATASETS = ("mnist5k", "mnist", "stacked-digits")
NEIGHBOURS = 3  # nearest neighbours, for precision and recall
SETTINGS = ("features", "count", "weights", "checkpoint", "seed", "step")
METRICS = {
    "frechet_inception_distance": "fid",
    "kernel_inception_distance_mean": "kid",
    "precision": "precision",
    "recall": "recall",
}


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the evaluation."""

    count: Annotated[int, Ge(1), Le(10**7)] | None = None
    """Number of samples, and of real images to compare them with. None takes 5,000, 26,000 of stacked digits, or half
    of a data set of fewer than 10,000: the floor needs as many other real images."""
    features: Literal["inception", "digits"] | None = None
    """The network that computes features: Inception (some 90 MB, downloaded once), or a classifier of digits. None is
    digits for mnist5k, mnist and stacked-digits, Inception for all other data."""
    weights: Literal["average", "last"] = "average"
    """The moving average of the generator's weights that --ema keeps, or those after the last step."""
    seed: Seed = 0
    """Fixes the samples and the choice of real images."""


class DigitFeatures(FeatureExtractorBase):
    """The digit classifier without its last layer, as a feature extractor of torch-fidelity."""

    def __init__(self, name: str, features: list[str], **_):
        super().__init__(name, features)
        self.layers = digits.digit_classifier()[0][:-1]

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
        return (self.layers(digits.as_digits(images)),)


register_feature_extractor("digits", DigitFeatures)
EXTRACTORS = {"digits": "digits", "inception": "inception-v3-compat"}


def measure(
    images: Tensor, real: Tensor, options: Options, device: torch.device, cache: str, distances: bool = True
) -> dict[str, float]:
    """Return the figures of `images`, by name, against as many `real` ones, both uint8 (N, C, H, W).

    cache: folder in which the features of `real` stay for the next call. distances: False for precision and recall
    alone.
    """
    seen, real = (part.expand(-1, 3 if options.features == "inception" else -1, -1, -1) for part in (images, real))
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        metrics = calculate_metrics(
            input1=Subset(seen, range(len(seen))),
            input2=Subset(real, range(len(real))),
            input2_cache_name="real",
            cache_root=cache,
            feature_extractor=EXTRACTORS[options.features],
            fid=distances,
            kid=distances,
            prc=True,
            prc_neighborhood=NEIGHBOURS,
            kid_subset_size=min(1000, len(images)),
            rng_seed=options.seed,
            cuda=device.type == "cuda",
            save_cpu_ram=True,  # no worker processes: the images are in memory
            verbose=False,
        )
    figures = {name: metrics[key] for key, name in METRICS.items() if key in metrics}
    return figures | digits.measure_digits(images) if distances and options.features == "digits" else figures


def measure_classes(images: LabeledImages, real: LabeledImages, *given: Options | torch.device) -> dict[str, float]:
    """Return the share of `images` that are of their class, if features are those of digits, and each class's recall.

    given: options and device, as for `measure`. A class with too few images for NEIGHBOURS is left out.
    """
    figures = {}
    if given[0].features == "digits":
        figures["of_their_class"] = (digits.classify(images.images)[1] == images.labels).float().mean().item()
    for number, name in enumerate(real.classes):
        part, real_part = (data.images[data.labels == number] for data in (images, real))
        if min(len(part), len(real_part)) > NEIGHBOURS:
            with tempfile.TemporaryDirectory() as cache:
                figures[f"recall_of_{name}"] = measure(part, real_part, *given, cache, distances=False)["recall"]
    return figures


def download_inception() -> None:
    """Download the weights of Inception if they are missing; raises BadInput if that fails."""
    try:
        torch.hub.load_state_dict_from_url(URL_INCEPTION_V3, map_location="cpu")
    except (OSError, HTTPException, RuntimeError) as error:
        raise BadInput(
            f"--features inception: its weights could not be downloaded ({error}); put {URL_INCEPTION_V3} "
            f"into {torch.hub.get_dir()}/checkpoints, or take --features digits for a run on handwritten digits"
        ) from error


def select_images(images: Tensor | StreamedImages, indices: Tensor) -> Tensor:
    """Return the images at `indices`, uint8 (len(indices), C, H, W), read from their files if streamed."""
    if isinstance(images, StreamedImages):
        return torch.cat(list(images.batches(iter(indices.split(64)))))
    return images[indices]


def curve_name(entry: dict) -> str:
    """Return the name of an evaluation's curves: features, count and weights, and the seed if it is not the default."""
    seed = f"-seed-{entry['seed']}" if entry["seed"] else ""
    return f"{entry['features']}-{entry['count']}-{entry['weights']}{seed}"


def add_to_run(folder: Path, entry: dict) -> None:
    """Add an entry to `evaluation.json`, in place of one of the same SETTINGS, and its points to TensorBoard."""
    with events(folder) as board:
        # TensorBoard opens the groups that are first in the alphabet: the pictures, not these.
        for group, part in (("quality", "samples"), ("quality_floor", "floor")):
            for name, figure in entry[part].items():
                board.add_scalar(f"{group}/{curve_name(entry)}/{name}", figure, entry["step"])
    path = folder / "evaluation.json"
    earlier = json.loads(path.read_text()) if path.exists() else []
    others = [one for one in earlier if any(one[name] != entry[name] for name in SETTINGS)]
    write_whole(path, lambda file: file.write(json.dumps([*others, entry], indent=2).encode()))


def evaluate_run(options: Options) -> dict:
    """Measure, add the figures to the run, and return their entry in its `evaluation.json`."""
    checkpoint = load_checkpoint(options.run)
    if is_cyclegan(checkpoint):
        raise BadInput(f"{options.run}: a CycleGAN translates images and takes no noise; see scripts/tools/sample.py")
    generator = load_generator(checkpoint, options, options.weights)
    with refusing(options.run):
        dataset, z_dim = os.fspath(checkpoint["options"]["dataset"]), checkpoint["options"]["z_dim"]
    device = pick_device(options.device)

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
    if options.features == "inception":
        download_inception()

    random = torch.Generator().manual_seed(options.seed)
    z, order = torch.randn(count, z_dim, generator=random), torch.randperm(len(images), generator=random)[: 2 * count]
    real, others = select_images(images, order).split(count)
    labels, other_labels = data.labels[order].split(count) if names else (None, None)
    samples = generate(generator, device, z, *([labels] if names else []))
    if counts_modes:
        figures, floor = measure_modes(samples), measure_modes(others)
    else:
        with tempfile.TemporaryDirectory() as cache:
            figures, floor = (measure(part, real, options, device, cache) for part in (samples, others))
    if names:
        labeled = LabeledImages(real, labels, data.classes)
        figures |= measure_classes(replace(labeled, images=samples), labeled, options, device)
        floor |= measure_classes(replace(labeled, images=others, labels=other_labels), labeled, options, device)
    entry = {
        "features": options.features,
        "count": count,
        "weights": options.weights if "average" in checkpoint else "last",
        "checkpoint": "checkpoint.pt" if options.run.is_dir() else options.run.name,
        "seed": options.seed,
        "step": checkpoint["step"],
        "device": str(device),
        "samples": figures,
        "floor": floor,
    }
    if options.features == "digits":
        entry["classifier_accuracy"] = digits.digit_classifier()[1]
    add_to_run(options.folder, entry)
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
    options = checked(options)
    entry = evaluate_run(options)
    print(f"{report(entry)}\n\nWritten to {short_path(options.folder / 'evaluation.json')}")
    print(f"TensorBoard: quality/{curve_name(entry)}")


if __name__ == "__main__":
    launch(main, Options)
