"""Operands of two dtypes, or on two devices."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F
from torch import nn

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(
    wrong=RuntimeError,
    right=[[0.35]],
    errors=(
        "mat1 and mat2 must have the same dtype",
        "expected m1 and m2 to have the same dtype",
        *(
            f"Input type ({kind}) and"
            for kind in ("double", "unsigned char", "long long", "c10::Half", "c10::BFloat16")
        ),
        *(f"Input type (torch.cuda.{kind}Tensor) and" for kind in ("Double", "Byte", "Half", "BFloat16")),
        *(f"Input type (torch.{kind}Tensor) and" for kind in ("Double", "Byte", "Half", "BFloat16")),
        "and bias type (c10::Half) should be the same",
        "and bias type (c10::BFloat16) should be the same",
        *(f"expected scalar type {kind} but found" for kind in ("Float", "Double", "Half", "BFloat16", "Byte")),
    ),
)
class InputDtype:
    """A network of one dtype gets images of another.

    NumPy's numbers are float64, images from a file are bytes, weights are float32. PyTorch does not convert between
    them in a layer. Half weights with float images give the same.

    images.float(), or z.to(weight.dtype). For half precision, leave weights and images in float32 and use
    torch.autocast.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        z = torch.ones(1, 1, dtype=torch.float64)
        return discriminator(generator(z))

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        z = torch.ones(1, 1, dtype=torch.float64)
        return discriminator(generator(z.float()))


@pitfall(
    wrong=RuntimeError,
    right=0.69315,
    errors=(
        *(
            f"Found dtype {kind} but expected"
            for kind in ("Long", "Double", "Half", "BFloat16", "Int", "Byte", "Float")
        ),
        "can't be cast to the desired output type",
    ),
)
class LabelDtype:
    """Labels of another dtype than the scores.

    torch.tensor([1]) and the labels of a data set are integers; NumPy's are float64. A loss compares numbers of one
    kind. Some versions compute the loss and fail only in backward().

    torch.ones_like(score), or label.to(score.dtype).
    """

    def wrong():
        probability = torch.tensor([0.5], requires_grad=True)
        label = torch.tensor([1])
        return F.binary_cross_entropy(probability, label)

    def right():
        probability = torch.tensor([0.5], requires_grad=True)
        label = torch.tensor([1]).to(probability.dtype)
        return F.binary_cross_entropy(probability, label)


@pitfall(
    wrong=RuntimeError,
    right=[[0.5]],
    errors=(
        "Expected all tensors to be on the same device",
        "is not on the expected device",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)",
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor)",
    ),
)
class TwoDevices:
    """Weights on one device, images or labels on another.

    .to(device) moves a network in place, but a tensor only if its result is used. Noise and labels made in the loop are
    on the CPU unless device= says otherwise. Shown with the device "meta", which every machine has.

    torch.randn(n, z_dim, device=real.device), torch.ones_like(score), and images = images.to(device). Make the
    optimizer after the network has moved.
    """

    def wrong():
        generator = nn.Linear(1, 1)
        z = torch.ones(1, 1, device="meta")
        return generator(z)

    def right():
        generator, _, _, _ = one_weight_gan()
        z = torch.ones(1, 1, device=generator.weight.device)
        return generator(z)
