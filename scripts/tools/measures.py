"""What is measured of images: features of them, distances and overlap of features, lattices, colours."""

import logging
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_fidelity import feature_extractor_inceptionv3 as inception_v3
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

from common.data import to_float, to_uint8
from common.errors import as_bad_input

NEIGHBOURS = 3  # nearest neighbours, for precision and recall


def feature_extractor(name: str, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Return the function from uint8 images (N, C, H, W) to their features (N, F), float32 on the CPU.

    name: random, inception or a file. Raises BadInput if its weights are missing and cannot be downloaded.
    """
    if name == "random":
        network = random_features
    elif name == "inception":
        advice = f"put {inception_v3.URL_INCEPTION_V3} into {torch.hub.get_dir()}/checkpoints, or take random"
        with as_bad_input(f"--features inception: its weights could not be downloaded; {advice}", Exception):
            inception = inception_v3.FeatureExtractorInceptionV3("inception-v3-compat", ["2048"]).to(device)
        network = lambda images: inception(to_uint8(images))[0]  # noqa: E731
    else:
        hint = "neither digits, classes, random or inception, nor by torch.export.save"
        logging.getLogger("torch.export").setLevel(logging.CRITICAL)  # which would print its own text before ours
        with as_bad_input(f"--features {name}: {hint}", Exception):
            network = torch.export.load(name).module().to(device)

    def features_of(part: Tensor) -> Tensor:
        return network(part.clone().to(device)).float().cpu()  # it may change its input

    def features(images: Tensor) -> Tensor:
        size = f"{images.shape[2]}, {images.shape[3]}"
        asked = f"must give finite (N, F), F > 1, of floats (N, 3, {size}), for any N; export it so"
        with as_bad_input(f"--features {name}: {asked}", Exception), torch.no_grad():
            chunks = to_float(images).expand(-1, 3, -1, -1).split(64)
            found = torch.cat([features_of(chunk) for chunk in chunks])
            if found.ndim != 2 or len(found) != len(images) or found.shape[1] < 2 or not found.isfinite().all():
                raise ValueError(f"gives {[*found.shape]} of {len(images)} images, or NaN or infinity")
            if (found == found[0]).all() and not (images == images[0]).all():
                raise ValueError("the features of all images are the same")
            alone = features_of(chunks[0][:2])
            if not torch.allclose(alone, found[:2], atol=0.01 * found.abs().max().item()):
                raise ValueError("the features of an image are others beside others: export it after eval()")
            return found

    return features


def random_features(images: Tensor) -> Tensor:
    """Return features (N, 224) of images (N, 3, H, W) in [-1, 1]: means and deviations of channels of convolutions.

    Their weights are random, fixed by a seed. Naeem et al., "Reliable Fidelity and Diversity Metrics for Generative
    Models" (2020): such features judge images far from ImageNet's better than those of a network trained on it.
    """
    random, parts = torch.Generator().manual_seed(0), []
    for outputs, inputs in ((16, 3), (32, 16), (64, 32)):
        weight = torch.randn(outputs, inputs, 3, 3, generator=random) * (2 / (9 * inputs)) ** 0.5
        images = F.conv2d(images, weight.to(images), stride=2, padding=1).relu()
        parts += [images.mean((2, 3)), images.std((2, 3), correction=0)]
    return torch.cat(parts, dim=1)


def measure_fid(samples: Tensor, real: Tensor) -> float:
    """Return the FID (Heusel et al. 2017) of samples, given their features (N, D) and those of real images."""
    statistics = map(fid_features_to_statistics, (samples, real))
    return fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"]


def measure_distances(samples: Tensor, real: Tensor, seed: int) -> dict[str, float]:
    """Return FID and KID (Binkowski et al. 2018) of samples, given their features and those of as many real images."""
    size = min(1000, len(real))
    kid = kid_features_to_metric(samples, real, kid_subset_size=size, rng_seed=seed, verbose=False)
    return {"fid": measure_fid(samples, real), "kid": kid["kernel_inception_distance_mean"]}


def measure_overlap(samples: Tensor, real: Tensor) -> dict[str, float]:
    """Return precision and recall (Kynkaanniemi et al. 2019) of samples, given features (N, D) and real ones (M, D)."""
    figures = prc_features_to_metric(samples, real, prc_neighborhood=NEIGHBOURS, save_cpu_ram=True, verbose=False)
    return {name: figures[name] for name in ("precision", "recall")}


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


def measure_colours(images: Tensor, real: Tensor) -> dict[str, float]:
    """Return the spread of the mean colours of uint8 images (N, C, H, W), relative to that of real images, if any."""
    spread, real_spread = (part.float().mean((2, 3)).var(0).sum().sqrt().item() for part in (images, real))
    return {"colours": spread / real_spread} if real_spread >= 1 else {}  # of alike ones, below a step of 255
