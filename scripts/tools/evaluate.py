"""Measure how good a finished run's images are, beside what a perfect generator would reach.

FID and KID are distances between features of the samples and of real images, 0 is best (Heusel et al. 2017, Binkowski
et al. 2018). Precision is the share of samples that lie among the real images, recall the share of real images that lie
among the samples (Kynkaanniemi et al. 2019). The features are those of a classifier of the data's classes, which also
says how many samples it is sure of, and the share of each class. Data without classes take those of a small network of
random weights, the same everywhere. If the networks take a class, each sample has that of a real image; beside the
recall of each class stands the share of samples that the classifier takes for the class asked for. `lattice` and
`lattice of 4` are the shares of the images' power at periods of two and of four pixels, those of the lattices which
some networks leave; `colours` is the spread of the images' mean colours relative to that of the real images. Beside
each figure, in the column `real images`, stands its floor: the same for other real images in place of the samples. The
real images are a folder's held-out ones and the floor's those trained on, if some are held out; for fashion-mnist and
cifar10 both are test images, for other data both are those trained on, which a line says. Figures of different features
or counts are not comparable: FID falls as the count grows.

Prints the figures, and adds them to `evaluation.json` in the run, one entry for each settings and step, and to
TensorBoard, as the run `evaluation` in it: `quality/<settings>/fid` for the samples, `quality_floor/<settings>/fid` for
the floor. On the same machine the same settings give the same figures.

    python scripts/tools/evaluate.py runs/gan_detach/20260101-120000
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from math import prod
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from filelock import FileLock
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, lock, write_whole
from common.conditional import LabeledImages, load_labeled_images
from common.data import DATASETS, DOWNLOADS, TORCHVISION, load_images, to_float, to_uint8
from common.errors import BadInput, as_bad_input
from common.image_files import Fit, image_paths, training_paths
from common.options import Range, Seed
from common.run import pick_device
from scripts.tools.classifier import class_classifier, digit_classifier
from scripts.tools.finished_run import GeneratorOptions, class_names, generate, has_float_data, make_generator
from scripts.tools.output import launch, table

COUNT = 5000
HELD_OUT = ("fashion-mnist", "cifar10")  # compared with their test images
DIGIT_DATASETS = ("mnist5k", "mnist")
NEIGHBOURS = 3  # nearest neighbours, for precision and recall
LEAST = 2 * (NEIGHBOURS + 1)  # real images: the floor needs two sets of them
settings_of = itemgetter("features", "count", "weights", "checkpoint", "seed", "step")  # of an entry


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the evaluation."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Number of samples, and of real images to compare them with. None takes 5,000, or fewer: those
    held out, or half of all, as the floor needs as many other real images."""
    features: str | None = None
    """What computes features: digits, a classifier of them; classes, one of the data's, trained in a minute and kept;
    random, a network of random weights; inception (some 90 MB, downloaded once); or the file of a network of yours,
    written by torch.export.save, floats (N, 3, H, W) in [-1, 1] to (N, F), for any N. None is digits for mnist5k and
    mnist, else classes if there are any, else random."""
    weights: Literal["average", "last"] = "average"  # The EMA of the weights, or those after the last step.
    seed: Seed = 0  # Fixes the samples and the choice of real images.
    dataset: str | None = None  # Where the run's images are now, if a folder has moved. None: where they were.
    watch: bool = False  # Judge each new checkpoint of a run under way, up to its last one.


def fidelity(module: str) -> ModuleType:
    """Return a module of torch-fidelity; raises BadInput if it is not installed."""
    with as_bad_input("evaluate.py needs torch-fidelity, pip install torch-fidelity", ImportError):
        return import_module(f"torch_fidelity.{module}")


def feature_extractor(name: str, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Return the function from uint8 images (N, C, H, W) to their features (N, F), float32 on the CPU.

    name: random, inception or a file. Raises BadInput if its weights are missing and cannot be downloaded.
    """
    if name == "random":
        network = RandomFeatures()
    elif name == "inception":
        source = fidelity("feature_extractor_inceptionv3")
        advice = f"put {source.URL_INCEPTION_V3} into {torch.hub.get_dir()}/checkpoints, or take random"
        with as_bad_input(f"--features inception: its weights could not be downloaded; {advice}"):
            inception = source.FeatureExtractorInceptionV3("inception-v3-compat", ["2048"]).to(device)
        network = lambda images: inception(to_uint8(images))[0]  # noqa: E731
    else:
        with as_bad_input(f"--features {name}: neither digits, classes, random or inception, nor by torch.export.save"):
            network = torch.export.load(name).module().to(device)

    def features(images: Tensor) -> Tensor:
        with torch.no_grad():
            chunks = to_float(images).expand(-1, 3, -1, -1).split(64)
            return torch.cat([network(chunk.to(device)).float().cpu() for chunk in chunks])

    return features


class RandomFeatures(nn.Module):
    """Convolutions of random weights, which a seed fixes; features are the means and deviations of their channels.

    Naeem et al., "Reliable Fidelity and Diversity Metrics for Generative Models" (2020): such features judge images far
    from ImageNet's better than those of a network trained on it.
    """

    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(0)
        shapes = [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3)]
        self.weights = [torch.randn(shape, generator=random) * (2 / prod(shape[1:])) ** 0.5 for shape in shapes]

    def forward(self, images: Tensor) -> Tensor:
        """Return features (N, 224) of images (N, 3, H, W) in [-1, 1]."""
        parts = []
        for weight in self.weights:
            images = F.conv2d(images, weight.to(images), stride=2, padding=1).relu()
            parts += [images.mean((2, 3)), images.std((2, 3), correction=0)]
        return torch.cat(parts, dim=1)


def measure_lattice(images: Tensor, period: int = 2) -> float:
    """Return the share of power at a period of so many pixels, of uint8 images (N, C, S, S): a mean over images.

    The power is that of the mean over the channels, without its mean. Odena et al., "Deconvolution and Checkerboard
    Artifacts" (2016).
    """
    grey, side = images.double().mean(1), images.shape[-1]
    power = torch.fft.fft2(grey - grey.mean((1, 2), keepdim=True)).abs().square()
    is_of_period = torch.isin(torch.arange(side), torch.tensor([side // period, side - side // period]))
    lattice = power[:, is_of_period[:, None] | is_of_period].sum(1)
    return (lattice / power.sum((1, 2)).clamp(min=1e-3)).mean().item()  # which an image of one colour has none of


def measure_colours(images: Tensor, real: Tensor) -> float:
    """Return the spread of the mean colours of uint8 images (N, C, H, W), relative to that of real images."""
    spreads = [part.float().mean((2, 3)).var(0).sum().sqrt() for part in (images, real)]
    return (spreads[0] / spreads[1].clamp(min=1e-9)).item()


def measure_overlap(samples: Tensor, real: Tensor) -> dict[str, float]:
    """Return precision and recall of samples, given their features (N, D) and those of real images (M, D)."""
    measure = fidelity("metric_prc").prc_features_to_metric
    figures = measure(samples, real, prc_neighborhood=NEIGHBOURS, save_cpu_ram=True, verbose=False)
    return {name: figures[name] for name in ("precision", "recall")}


def measure_fid(samples: Tensor, real: Tensor) -> float:
    """Return the FID of samples, given their features (N, D) and those of real images."""
    fid = fidelity("metric_fid")
    statistics = map(fid.fid_features_to_statistics, (samples, real))
    return fid.fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"]


def measure_distances(samples: Tensor, real: Tensor, seed: int) -> dict[str, float]:
    """Return FID and KID of samples, given their features (N, D) and those of as many real images."""
    size, seed = min(1000, len(real)), seed % 2**32  # as many bits as NumPy takes
    measure = fidelity("metric_kid").kid_features_to_metric
    kid = measure(samples, real, kid_subset_size=size, rng_seed=seed, verbose=False)
    return {"fid": measure_fid(samples, real), "kid": kid["kernel_inception_distance_mean"]}


def load_real(dataset: str, size: int | None, fit: Fit = "crop") -> LabeledImages:
    """Return all real images, of no class if they have no labels; raises BadInput for too few or none."""
    try:
        data = load_labeled_images(dataset, size, fit, hold_out=False, held_out=dataset in HELD_OUT)
    except BadInput:  # without labels, or no images at all, which is refused here
        images = load_images(dataset, size, fit, hold_out=False)
        data = LabeledImages(images, torch.zeros(len(images)), ())
    if len(data.images) < LEAST:
        raise BadInput(f"{dataset}: has {len(data.images)} images, too few to judge samples by; take {LEAST} or more")
    return data


def find_unseen(dataset: str, trained_on: int) -> Tensor:
    """Return of each image of a folder whether a run on so many has not seen it, bool (N,); (0,) for other data."""
    paths = image_paths(dataset) if dataset not in DATASETS else []
    trained = training_paths(paths)
    seen = {*trained} if len(trained) == trained_on else {*paths}
    return torch.tensor([path not in seen for path in paths], dtype=torch.bool)


def require_count(count: int, most: int, images: int) -> None:
    """Raise BadInput unless so many samples can be compared with real images."""
    if not NEIGHBOURS < count <= most:
        raise BadInput(f"--count {count}: must be more than {NEIGHBOURS}, and at most {most}, of {images} real images")


def curve_name(entry: dict) -> str:
    """Return the name of an evaluation's curves: features, count and weights, and the seed if it is not the default."""
    seed = f"-seed-{entry['seed']}" if entry["seed"] else ""
    return f"{entry['features']}-{entry['count']}-{entry['weights']}{seed}"


def stored_entries(path: Path) -> dict[tuple, dict]:
    """Return the entries of an `evaluation.json` by their settings; raises BadInput if it is something else."""
    with as_bad_input(f"{path}: was not written by evaluate.py; move it elsewhere"):
        return {settings_of(entry): entry for entry in json.loads(path.read_text())} if path.exists() else {}


def add_to_board(folder: Path, entry: dict) -> None:
    """Add the figures of an entry to TensorBoard, as a run of their own: a newer file would hide a training's own."""
    with SummaryWriter(folder / "evaluation") as board:
        # TensorBoard opens the groups that are first in the alphabet: the pictures, not these.
        for group, part in (("quality", "samples"), ("quality_floor", "floor")):
            for name, figure in entry[part].items():
                board.add_scalar(f"{group}/{curve_name(entry)}/{name}", figure, entry["step"])


def evaluate_run(options: Options, checkpoint: dict | None = None, only_fid: bool = False) -> dict:
    """Measure, add the figures to the run, and return their entry in its `evaluation.json`.

    checkpoint: that of the run, if it is loaded already. only_fid: return the FID of the samples and the step alone, in
    a fifth of the time, and add nothing.
    """
    fidelity("metric_fid")  # refused before any work
    run, device, path = options.run, pick_device(options.device), options.folder / "evaluation.json"
    checkpoint = checkpoint or load_checkpoint(run)
    stored_entries(path)
    if has_float_data(checkpoint):
        raise BadInput(f"{run}: its data are floats, not images, which alone can be evaluated")
    generator, names = make_generator(checkpoint, run, options.networks, options.weights), class_names(checkpoint)
    dataset, z_dim = options.dataset or checkpoint["options"].get("dataset"), checkpoint["options"]["z_dim"]
    if not isinstance(dataset, str):
        raise BadInput(f"{run}: does not say which images it was trained on; name them, --dataset")
    shape = checkpoint["data_shapes"][0]
    unseen = find_unseen(dataset, shape[0])
    if options.count and len(unseen):  # before they are read
        require_count(options.count, unseen.sum().item() or len(unseen) // 2, len(unseen))
    data = load_real(dataset, shape[-1], checkpoint["options"].get("fit", "crop"))
    if len(unseen) not in (0, len(data.images)):
        raise BadInput(f"{dataset}: images have been added or removed meanwhile; try again")
    now, before = [data.images.shape[1], *data.classes], [shape[1], *(names or data.classes)]
    if options.dataset and dataset not in HELD_OUT:
        now, before = [len(data.images) - unseen.sum().item(), *now], [shape[0], *before]
    if now != before:
        message = f"number, channels and classes of {dataset} are {now}, those of the run {before}"
        raise BadInput(f"{run}: {message}; use the same images")
    has_classes = len(data.classes) > 1
    kind = options.features or ("digits" if dataset in DIGIT_DATASETS else "classes" if has_classes else "random")
    if kind == "classes" and not has_classes:
        raise BadInput(f"--features classes: {dataset} has no classes; take random")
    most = unseen.sum().item() or len(data.images) // 2
    count = options.count or min(COUNT, most)
    require_count(count, most, len(data.images))
    judge = None
    if kind == "digits":
        judge = digit_classifier()
    elif kind == "classes":
        judge = class_classifier(dataset, data, DOWNLOADS if dataset in TORCHVISION else options.folder)
    extract_features = judge.features if judge else feature_extractor(kind, device)

    random = torch.Generator().manual_seed(options.seed)
    z = torch.randn(count, z_dim, generator=random)
    order = torch.randperm(len(data.images), generator=random)
    rows, other_rows = order[: 2 * count].split(count)
    if unseen.any():
        rows, other_rows = (order[part][:count] for part in (unseen[order], ~unseen[order]))
    real, others = data.images[rows], data.images[other_rows]
    labels, other_labels = (data.labels[rows], data.labels[other_rows]) if names else (None, None)
    real_features = extract_features(real)
    samples = generate(generator, device, z, *([labels] if names else []))
    if only_fid:
        return {"fid": measure_fid(extract_features(samples), real_features), "step": checkpoint["step"]}

    def measure(images: Tensor, of_class: Tensor | None) -> dict[str, float]:
        features = extract_features(images)
        figures = measure_distances(features, real_features, options.seed) | measure_overlap(features, real_features)
        figures |= {"lattice": measure_lattice(images), "lattice_of_4": measure_lattice(images, 4)}
        figures |= {"colours": measure_colours(images, real)} | (judge.measure(features) if judge else {})
        if judge and names:
            figures["of_their_class"] = (judge.classify(features)[1] == of_class).float().mean().item()
        for number, name in enumerate(names):
            part, real_part = features[of_class == number], real_features[labels == number]
            if min(len(part), len(real_part)) > NEIGHBOURS:
                figures[f"recall_of_{name}"] = measure_overlap(part, real_part)["recall"]
        return figures

    entry = {
        "features": Path(kind).name,
        "real": "held-out" if unseen.any() else "test" if dataset in HELD_OUT else "training",
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
    title += f", compared with {entry['real']} images; features: {entry['features']}"
    if accuracy := entry.get("classifier_accuracy"):
        title += f" (the classifier's accuracy is {accuracy:.1%} on {entry['held_out']:,} held-out images)"
    rows = []
    for name, value in entry["samples"].items():
        style = {"fid": ".3f", "kid": ".5f", "lattice": ".2%", "lattice_of_4": ".2%"}.get(name, ".1%")
        floor = entry["floor"].get(name)  # a class may have too few images on one side
        rows.append([name.replace("_", " "), f"{value:{style}}", "" if floor is None else f"{floor:{style}}"])
    return f"{title}\n\n{table(['', 'samples', 'real images'], rows)}"


def watch(run: Path) -> Iterator[dict]:
    """Yield the checkpoint in a run's folder, and each that replaces it, up to the last that the run will have.

    That is the one of the last step, or the one that is there when no process trains the run.
    """
    path, before, step, ends = run / "checkpoint.pt", None, 0, False
    if not path.exists() and not (run / ".lock").exists():
        raise BadInput(f"--watch: {run} is not the folder of a run; name that")
    while not ends:
        with suppress(BadInput), ExitStack() as opened:  # a process that trains the run holds the lock
            lock(run, opened)
            ends = True  # after the next look at the file, as the run wrote its last checkpoint under the lock
        changed = path.stat().st_mtime_ns if path.exists() else None
        if changed == before and (step or not ends):
            time.sleep(1)
            continue
        before, checkpoint = changed, load_checkpoint(run)
        if checkpoint["step"] != step:  # else it has replaced itself, or arrived between the two lines above
            step = checkpoint["step"]
            yield checkpoint
        ends = ends or step == checkpoint["options"].get("steps")


def main(options: Options) -> None:
    """Measure, print the figures and add them to the run."""
    for checkpoint in watch(options.run) if options.watch else [load_checkpoint(options.run)]:
        entry = evaluate_run(options, checkpoint)
        print(f"{report(entry)}\n\nWritten to {options.folder / 'evaluation.json'}")
        print(f"TensorBoard: quality/{curve_name(entry)}", flush=True)


if __name__ == "__main__":
    launch(main, Options)
