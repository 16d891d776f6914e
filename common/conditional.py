"""Labels: data sets whose images have a class, and networks that get it."""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from common.data import DATASETS, load_dataset
from common.errors import BadInput, as_bad_input
from common.image_files import Fit, image_paths, load_files, training_paths
from common.models import MODELS, Normalised


@dataclass(frozen=True)
class LabeledImages:
    """Images, each with its class: one data set, whose batches are pairs."""

    images: Tensor  # N of them, as `load_images` returns
    labels: Tensor  # int64 (N,), indices into `classes`
    classes: tuple[str, ...]

    def __post_init__(self):
        if len(self.images) != len(self.labels):
            raise BadInput(f"{len(self.images)} images have {len(self.labels)} labels; give each image one label")
        labels, count = torch.as_tensor(self.labels), len({*self.classes})
        is_right = labels is self.labels and labels.dtype == torch.int64 and labels.ndim == 1
        is_right &= {*map(type, self.classes)} == {str} and count == len(self.classes)
        is_right &= bool(((labels >= 0) & (labels < count)).all())
        if self.classes and not is_right:
            raise BadInput(f"labels must be int64 (N,), from 0 to {count - 1}, and classes distinct texts")


def load_labeled_images(
    dataset: str, image_size: int | None = None, fit: Fit = "crop", hold_out: bool = True, held_out: bool = False
) -> LabeledImages:
    """Return what `load_images` does, or the held-out part, with the class of each: in a folder, its folder.

    Classes are those of all files of a folder; raises BadInput if all images of one are held out, or for none.
    """
    if dataset in DATASETS:
        return LabeledImages(*load_dataset(dataset, image_size, held_out))
    paths = image_paths(dataset)  # once: a file that is added now is in neither images nor labels
    places = {path: Path(path).relative_to(dataset).parts for path in paths}
    if stray := [place[0] for place in places.values() if len(place) < 2]:
        raise BadInput(f"--dataset {dataset}: {stray[0]} has no class; labels take a folder of images for each class")
    names = {path: os.fsencode(place[0]).decode(errors="backslashreplace") for path, place in places.items()}
    classes = sorted({*names.values()})
    folders = {entry.name for entry in os.scandir(dataset) if entry.is_dir() and entry.name[0] != "."}
    if empty := sorted(folders - {place[0] for place in places.values()}):
        raise BadInput(f"--dataset {dataset}: no image is in {', '.join(empty)}; remove what is no class")
    paths = training_paths(paths) if hold_out else paths
    if unseen := sorted({*classes} - {names[path] for path in paths}):
        raise BadInput(f"--dataset {dataset}: the held-out tenth has all of {', '.join(unseen)}; take --no-hold-out")
    labels = torch.tensor([classes.index(names[path]) for path in paths])
    return LabeledImages(load_files(paths, image_size or 64, fit=fit), labels, tuple(classes))


class ConditionalGenerator(nn.Module):
    """A generator of z_dim + classes values: the noise is followed by the label, as one value for each class."""

    def __init__(self, generator: nn.Module, classes: int):
        super().__init__()
        self.generator, self.classes = generator, classes

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return images (N, C, H, W), given noise (N, z_dim) and labels (N,) from 0 to classes - 1."""
        return self.generator(torch.cat([z, F.one_hot(labels, self.classes).to(z)], dim=1))


class ProjectionDiscriminator(nn.Module):
    """A discriminator that gets the class: to its logit it adds the product of its features and the class's own."""

    def __init__(self, discriminator: nn.Sequential, classes: int):
        super().__init__()
        # Its last layer is linear. Miyato and Koyama, "cGANs with Projection Discriminator" (2018).
        self.features, self.logit = discriminator[:-1], discriminator[-1]
        self.embedding = nn.Embedding(classes, self.logit.in_features)
        if parametrize.is_parametrized(self.logit):  # else the class's part of the logit would grow without a limit
            parametrize.register_parametrization(self.embedding, "weight", Normalised(), unsafe=True)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return logits (N, 1), given images (N, C, H, W) and labels (N,) from 0 to classes - 1."""
        features = self.features(images)
        return self.logit(features) + (self.embedding(labels) * features).sum(dim=1, keepdim=True)


def conditional(model: str, image_shape: tuple[int, int, int], z_dim: int, classes: int) -> tuple[nn.Module, nn.Module]:
    """Return the generator and the discriminator of a model in MODELS that get the class of each image; or BadInput."""
    with as_bad_input("--image-size", ValueError):
        generator, discriminator = MODELS[model](image_shape, z_dim + classes)
    return ConditionalGenerator(generator, classes), ProjectionDiscriminator(discriminator, classes)
