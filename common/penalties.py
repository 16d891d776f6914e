"""R3GAN's loss, and penalties on the discriminator's gradient with respect to its input.

Relativistic: Jolicoeur-Martineau (2019), without its output function, as in Huang et al., "The GAN is dead; long live
the GAN!" (2024). Zero-centred: Mescheder et al., "Which Training Methods for GANs do actually Converge?" (2018).
Between real and fake: Gulrajani et al., "Improved Training of Wasserstein GANs" (2017).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def relativistic_loss(higher: Tensor, lower: Tensor) -> Tensor:
    """`softplus(lower - higher)`, pair by pair, mean; logits of any one shape in, a 0-d tensor out.

    (real, fake) for D, (fake, real) for G. Raises ValueError for two shapes: (N, 1) and (N,) would make N * N pairs.
    """
    if higher.shape != lower.shape:
        raise ValueError(f"relativistic_loss pairs logits, but got {tuple(higher.shape)} and {tuple(lower.shape)}")
    return F.softplus(at_least_float32(lower) - at_least_float32(higher)).mean()


def zero_centred_penalty(logits: Tensor, samples: Tensor) -> Tensor:
    """Mean over samples of `|dD/dx|^2`, a 0-d tensor: R1 on real samples, R2 on fake ones; see `sample_gradients`."""
    return sample_gradients(logits, samples).square().sum(1).mean()


def interpolation_penalty(discriminator: Callable, real: Tensor, fake: Tensor, mix: Tensor | None = None) -> Tensor:
    """Mean over samples of `(|dD/dx| - 1)^2` at points between real and fake samples, a 0-d tensor.

    real, fake: (N, ...), of one shape; neither gets a gradient. mix: the weight of each real sample, (N,) in [0, 1];
    None draws it. Raises ValueError for other shapes.
    """
    if real.shape != fake.shape:
        raise ValueError(f"real and fake must have one shape, not {[*real.shape]} and {[*fake.shape]}")
    if mix is None:
        mix = torch.rand(len(real), device=real.device)
    mix = mix.to(real).view(-1, *[1] * (real.ndim - 1))
    between = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    # Of the norm of a gradient that is zero, this function has the derivative 0; that of sum().sqrt() is NaN.
    norms = torch.linalg.vector_norm(sample_gradients(discriminator(between), between), dim=1)
    return (norms - 1).square().mean()


def sample_gradients(logits: Tensor, samples: Tensor) -> Tensor:
    """Return dD/dx of each sample, (N, numbers in a sample), in float32 at least, with the graph to D's weights.

    samples: (N, ...), which D took after `samples.detach().requires_grad_()`. logits: (N, ...), what D made of them
    alone; several logits of a sample count as their sum. PyTorch raises RuntimeError where they have no such graph.
    """
    (gradients,) = torch.autograd.grad(logits.sum(), samples, create_graph=True)
    return at_least_float32(gradients).reshape(len(samples), -1)


def at_least_float32(values: Tensor) -> Tensor:
    """Return bfloat16 and float16 numbers in float32, and all others as they are; as in losses.py."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
