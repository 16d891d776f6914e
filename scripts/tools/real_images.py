"""The real images that a finished run is compared with, and which of them it has not seen."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from common.conditional import LabeledImages, load_labeled_images
from common.data import DATASETS, checksum, load_images, note_images
from common.errors import BadInput
from common.image_files import Fit, image_paths, training_paths
from scripts.tools import measures
from scripts.tools.finished_run import class_names

HELD_OUT = ("fashion-mnist", "cifar10")  # compared with their test images
LEAST = 2 * (measures.NEIGHBOURS + 1)  # real images: the floor needs two sets of them


def load_real(dataset: str, size: int | None, fit: Fit = "crop") -> LabeledImages:
    """Return all real images, of no class if they have no labels; raises BadInput for too few or none."""
    paths = [Path(path) for path in image_paths(dataset)] if dataset not in DATASETS else []
    return read_real(dataset, size, fit, tuple((path, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=1)
def read_real(dataset: str, size: int | None, fit: Fit, _files: tuple) -> LabeledImages:
    """Read what `load_real` returns. _files: what is another where files of a folder were added or replaced."""
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


def real_images_of(run: Path, checkpoint: dict, dataset: str | None) -> tuple[str, LabeledImages, Tensor]:
    """Return the name of a run's data, its real images, and which of these it has not seen, as `find_unseen` does.

    dataset: where they are now, None where they were. Raises BadInput if they are not those of the run.
    """
    names, trained_on = class_names(checkpoint), checkpoint["options"].get("dataset")
    if checkpoint.get("data_types", [])[:1] == ["float32"]:  # older runs have no types
        raise BadInput(f"{run}: its data are floats, not images, which alone can be evaluated")
    is_named, dataset = bool(dataset), dataset or trained_on
    shape, fit = checkpoint["data_shapes"][0], checkpoint["options"].get("fit", "crop")
    if not isinstance(dataset, str):
        raise BadInput(f"{run}: does not say which images it was trained on; name them, --dataset")
    if fit not in get_args(Fit):
        raise BadInput(f"{run}: its option fit is {fit!r}, none of {', '.join(get_args(Fit))}; rename it in its script")
    if is_named and dataset in HELD_OUT and trained_on not in (None, dataset):  # whose training images are not read
        raise BadInput(f"--dataset {dataset}: the run {run} was trained on {trained_on}; leave it out")
    unseen, data = find_unseen(dataset, shape[0]), load_real(dataset, shape[-1], fit)
    if shape[1] == 3 > data.images.shape[1]:  # gan_standalone.py takes all folders for colour
        data = replace(data, images=data.images.expand(-1, 3, -1, -1))
    if len(unseen) not in (0, len(data.images)):
        raise BadInput(f"{dataset}: images have been added or removed meanwhile; try again")
    channels = max(shape[1], data.images.shape[1] if unseen.any() else 0)  # the only files in colour may be held out
    now, before = [data.images.shape[1], *data.classes], [channels, *(names or data.classes)]
    if is_named and dataset not in HELD_OUT:
        now, before = [len(data.images) - unseen.sum().item(), *now], [shape[0], *before]
    if now != before:
        if names and unseen.any():
            load_labeled_images(dataset)  # names the classes of which all images are held out, if that is the reason
        advice = "use the same files; a run on a part of the classes, or on others, cannot be evaluated"
        raise BadInput(f"{run}: number, channels and classes of {dataset} are {now}, not {before}; {advice}")
    seen = data.images[~unseen] if len(unseen) else data.images
    if dataset in HELD_OUT:
        seen = load_images(dataset, shape[-1])
    if [*seen.shape] == shape:
        sums = [checksum(seen)]
        note_images(sums, {"it was trained on": checkpoint.get("image_checksums", sums)[:1]})
    return dataset, data, unseen
