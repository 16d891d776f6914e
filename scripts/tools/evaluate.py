"""Measure how good a finished run's images are.

- FID, KID: distances of the samples' features from real images'; 0 is best
- precision: the share of samples that lie among real images
- recall: the share of real images that lie among samples
- confident, rarest, share of X: what a classifier says, if there is one
- lattice, lattice of 4: the share of power at a period of 2 and of 4 pixels
- colours: the spread of the mean colours; 100% is that of real images

The column `real images` has the same of other real images.
- Compare figures of the same features and count: FID falls as that grows.
- The FID of papers is that of `--features inception`.
- They are added to `evaluation.json` and TensorBoard: docs/results.md.

    python scripts/tools/evaluate.py runs/gan_detach/20260101-120000
"""

import json
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
from filelock import FileLock
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.checkpoint import load_checkpoint, write_whole
from common.errors import BadInput, as_bad_input, as_stopped, show_lines
from common.launch import pick_device
from common.options import Range, Seed
from scripts.tools import measures
from scripts.tools.classifier import class_classifier, digit_classifier
from scripts.tools.finished_run import GeneratorOptions, class_names, find_average, generate, load_generator
from scripts.tools.output import launch, table
from scripts.tools.real_images import HELD_OUT, LEAST, real_images_of

COUNT = 5000
DIGIT_DATASETS = ("mnist5k", "mnist")
SETTINGS = ("features", "real", "count", "weights", "checkpoint", "seed", "step")  # of an entry


@dataclass(frozen=True)
class Options(GeneratorOptions):
    """Options of the evaluation."""

    count: Annotated[int, Range(1, 10**7)] | None = None
    """Samples, and real images to compare them with. None: 5,000, or as many as there are."""
    real: Literal["unseen", "any"] = "unseen"
    """Images of a folder that the run has not seen, if it has held out some; or any, up to half of the folder."""
    features: str | None = None
    """What computes features: digits, a classifier of them; classes, one of the data's, trained in a minute; random, a
    network of random weights; inception, as in papers (some 90 MB, downloaded once); or a file by torch.export.save,
    floats (N, 3, H, W) in [-1, 1] to (N, F), for any N. None: the first of digits, classes and random that suits."""
    weights: Literal["average", "last"] = "average"  # The EMA of the weights, or those after the last step.
    seed: Seed = 0  # Fixes the samples and the choice of real images.
    dataset: str | None = None  # Where the run's images are now, if a folder has moved. None: where they were.


def settings_of(entry: dict) -> tuple:
    """Return by what an entry is another than others; it has networks only where `--networks` named some."""
    return *(entry[name] for name in SETTINGS), entry.get("networks")


def curve_name(entry: dict) -> str:
    """Return the name of an evaluation's curves: features, count and weights, and what else is not the default."""
    seed, real = f"-seed-{entry['seed']}" if entry["seed"] else "", "-any" if entry["real"] == "any" else ""
    networks = f"-{entry['networks']}" if "networks" in entry else ""
    return f"{entry['features']}-{entry['count']}-{entry['weights']}{seed}{real}{networks}"


def own_name(file: str) -> str:
    """Return the name of a file of one's own with its CRC-32: another file of its name has another one."""
    return f"{Path(file).stem}-{zlib.crc32(Path(file).read_bytes()):08x}"


def stored_entries(path: Path) -> dict[tuple, dict]:
    """Return the entries of an `evaluation.json` by their settings; raises BadInput if it is something else."""
    with as_bad_input(f"{path}: was not written by evaluate.py; move it elsewhere", Exception):
        if path.exists() and not path.is_file():
            raise ValueError("no regular file")  # a FIFO would be waited for
        return {settings_of(entry): entry for entry in json.loads(path.read_text())} if path.exists() else {}


def evaluate_run(options: Options, only_fid: bool = False) -> dict:
    """Measure, and return the figures as an entry of the run's `evaluation.json`.

    only_fid: return the FID of the samples and the step alone, in a fifth of the time.
    """
    run, device = options.run, pick_device(options.device)
    checkpoint = load_checkpoint(run)
    torch.manual_seed(options.seed)  # for a generator that draws noise of its own
    stored_entries(options.folder / "evaluation.json")
    generator, names = load_generator(run, options.networks, options.weights, checkpoint), class_names(checkpoint)
    dataset, data, unseen = real_images_of(run, checkpoint, options.dataset)
    has_classes = len(data.classes) > 1
    kind = options.features or ("digits" if dataset in DIGIT_DATASETS else "classes" if has_classes else "random")
    if kind == "classes" and not has_classes:
        raise BadInput(f"--features classes: {dataset} has no classes; take random")
    has_unseen = options.real == "unseen" and unseen.any().item()
    most = unseen.sum().item() if has_unseen else len(data.images) // 2
    count = options.count or min(COUNT, most)
    if not LEAST // 2 <= count <= most:
        raise BadInput(f"--count {count}: must be from {LEAST // 2} to {most}, of {len(data.images)} real images")
    judge = digit_classifier() if kind == "digits" else class_classifier(dataset, data) if kind == "classes" else None
    accuracy = {"classifier_accuracy": judge.accuracy, "held_out": judge.held_out} if judge else {}
    if kind == "classes":
        chance = data.labels.bincount().max() / len(data.labels)  # of one who always names the largest class
        if judge.accuracy < (1 + chance) / 2:  # it knows fewer than half of the images, and guesses the others
            judge, kind = None, "random"
    extract_features = judge.features if judge else measures.feature_extractor(kind, device)

    random = torch.Generator().manual_seed(options.seed)
    z = torch.randn(count, checkpoint["options"]["z_dim"], generator=random)
    order = torch.randperm(len(data.images), generator=random)
    rows, other_rows = order[: 2 * count].split(count)
    if has_unseen:
        rows, other_rows = (order[part][:count] for part in (unseen[order], ~unseen[order]))
    real, others = data.images[rows], data.images[other_rows]
    labels, other_labels = data.labels[rows], data.labels[other_rows]
    real_features = extract_features(real)
    samples = generate(generator, device, z, *([labels] if names else []))
    if samples[0, :1].shape != real[0, :1].shape or samples.shape[1] not in (1, real.shape[1]):
        raise BadInput(f"{run}: its samples are {[*samples.shape[1:]]}, and those of {dataset} {[*real.shape[1:]]}")
    samples = samples.expand(-1, real.shape[1], -1, -1)
    if only_fid:
        return {"fid": measures.measure_fid(extract_features(samples), real_features), "step": checkpoint["step"]}

    def measure(images: Tensor, of_class: Tensor) -> dict[str, float]:
        features = extract_features(images)
        figures = measures.measure_distances(features, real_features, options.seed)
        figures |= measures.measure_overlap(features, real_features)
        figures |= {"lattice": measures.measure_lattice(images), "lattice_of_4": measures.measure_lattice(images, 4)}
        figures |= measures.measure_colours(images, real) | (judge.measure(features) if judge else {})
        if judge and names and {*names} <= {*judge.classes}:  # the digits may be more, or in another order
            numbers = torch.tensor([judge.classes.index(name) for name in names])
            figures["of_their_class"] = (judge.classify(features)[1] == numbers[of_class]).float().mean().item()
        for number, name in enumerate(names):
            part, real_part = features[of_class == number], real_features[labels == number]
            if min(len(part), len(real_part)) > measures.NEIGHBOURS:
                figures[f"recall_of_{name}"] = measures.measure_overlap(part, real_part)["recall"]
        return figures

    file, _, function = (options.networks or "").rpartition(":")
    made_by = {"networks": f"{own_name(file)}-{function}"} if file else {}
    doubt = "before images were replaced" if checkpoint.get("images_replaced") else ""
    doubt = "by the run that it began with" if checkpoint["options"].get("init_from") else doubt
    held_out = f"held-out (perhaps not {doubt})" if doubt else "held-out"
    trained_on = checkpoint["data_shapes"][0][0]
    trained = "training" if len(data.images) == trained_on else f"{len(data.images)} (not the {trained_on} trained on)"
    return accuracy | {
        **made_by,
        "features": kind if judge or kind in ("random", "inception") else own_name(kind),
        "real": held_out if has_unseen else "test" if dataset in HELD_OUT else "any" if unseen.any() else trained,
        "count": count,
        "weights": options.weights if find_average(checkpoint) else "last",
        "checkpoint": "checkpoint.pt" if options.run.is_dir() else options.run.name,
        "seed": options.seed,
        "step": checkpoint["step"],
        "device": str(device),
        "samples": measure(samples, labels),
        "floor": measure(others, other_labels),
    }


def add_to_run(options: Options, entry: dict) -> None:
    """Add an entry to the run's `evaluation.json`, and its figures to TensorBoard; raises Stopped if that fails."""
    path = options.folder / "evaluation.json"
    with as_stopped(f"{options.folder}: evaluation.json or evaluation/"):
        with FileLock(options.folder / ".evaluation.lock"):  # another evaluation may have ended meanwhile
            entries = stored_entries(path) | {settings_of(entry): entry}
            write_whole(path, json.dumps([*entries.values()], indent=2).encode())
        with SummaryWriter(options.folder / "evaluation") as board:  # in the run's own, a newer file would hide others
            # TensorBoard opens the groups that are first in the alphabet: the pictures, not these.
            for group, part in (("quality", "samples"), ("quality_floor", "floor")):
                for name, figure in entry[part].items():
                    board.add_scalar(f"{group}/{curve_name(entry)}/{name}", figure, entry["step"])


def report(entry: dict) -> str:
    """Return an entry of `evaluation.json` as text, with a table of its figures."""
    title = f"step {entry['step']}, {entry['weights']} weights, {entry['count']:,} images a side"
    title += f", compared with {entry['real']} images; features: {entry['features']}"
    if (accuracy := entry.get("classifier_accuracy")) is not None:
        little = ": its own features tell little" if entry["features"] == "random" else ""
        title += f" (the classifier's accuracy is {accuracy:.1%} on {entry['held_out']:,} held-out images{little})"
    rows = []
    for name, value in entry["samples"].items():
        style = {"fid": ".3f", "kid": ".5f", "lattice": ".2%", "lattice_of_4": ".2%"}.get(name, ".1%")
        floor = entry["floor"].get(name)  # a class may have too few images on one side
        rows.append([name.replace("_", " "), f"{value:{style}}", "" if floor is None else f"{floor:{style}}"])
    notes = [] if entry["features"] == "inception" else ["The FID of papers has other features: --features inception."]
    if entry["real"].startswith("held-out") and entry["count"] < COUNT:
        notes += ["More images a side, most of which the run has seen: --real any."]
    return "\n\n".join([title, table(["", "samples", "real images"], rows), *notes])


def main(options: Options) -> None:
    """Measure, print the figures and add them to the run."""
    entry = evaluate_run(options)
    show_lines(report(entry))
    add_to_run(options, entry)
    show_lines(f"\nWritten to {options.folder / 'evaluation.json'}", f"TensorBoard: quality/{curve_name(entry)}")


if __name__ == "__main__":
    launch(main, Options)
