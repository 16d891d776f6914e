"""Which of the 1,000 modes of stacked digits a set of images has, and how evenly."""

import torch
from torch import Tensor

from common.data import load_stacked_digits
from scripts.tools.classifier import digit_classifier

MODES = 1000


def modes_of(digits: Tensor) -> Tensor:
    """Return the mode of each image, int64 (N,) from 0 to 999, given the digits in red, green and blue, (N, 3)."""
    return digits @ torch.tensor([100, 10, 1])


def coverage(modes: Tensor) -> dict[str, float]:
    """Return how many modes there are among `modes` (N,), and their reverse KL divergence to those of the data.

    That is the sum of q log(q / p), q being the share of a mode here and p its share in the data set by its labels, in
    nats; 0 is best. N images drawn from p itself have about 999 / 2N.
    """
    share = torch.bincount(modes, minlength=MODES).double() / len(modes)
    data = torch.bincount(modes_of(load_stacked_digits()[1]), minlength=MODES).double()
    divergence = torch.xlogy(share, share * data.sum() / data).sum().item()
    return {"modes": int((share > 0).sum()), "reverse_kl": divergence}


def measure_modes(images: Tensor) -> dict[str, float]:
    """Return the coverage of uint8 images (N, 3, H, W), and the share classified with confidence in all channels."""
    judge = digit_classifier()
    confident, digits = (part.view(-1, 3) for part in judge.classify(judge.features(images.flatten(0, 1)[:, None])))
    return coverage(modes_of(digits)) | {"confident": confident.all(1).float().mean().item()}
