"""Penalties on the discriminator's gradient with respect to its input.

Zero-centred: Mescheder et al., "Which Training Methods for GANs do actually Converge?" (2018). The approximate one: Lin
et al., "Diffusion Adversarial Post-Training for One-Step Video Generation" (2025). Between real and fake: Gulrajani et
al., "Improved Training of Wasserstein GANs" (2017).
"""

from collections.abc import Callable

import torch
from torch import Tensor


def zero_centred_penalty(logits: Tensor, samples: Tensor) -> Tensor:
    """Mean over samples of `|dD/dx|^2`, a 0-d tensor: R1 on real samples, R2 on fake ones; see `sample_gradients`."""
    return sample_gradients(logits, samples).square().sum(1).mean()


def approximate_penalty(
    discriminator: Callable[[Tensor], Tensor],
    samples: Tensor,
    logits: Tensor,
    sigma: float = 0.03,
    noise: Tensor | None = None,
) -> Tensor:
    """Mean over samples of `((D(x + sigma * noise) - D(x)) / sigma)^2`, a 0-d tensor, without a second derivative.

    Its mean over the noise tends to `zero_centred_penalty` as sigma goes to 0. The paper does not divide: its weight of
    100 at a sigma of 0.01 is 0.01 here. samples, logits: as in `sample_gradients`. noise: standard normal, of the shape
    of samples; None draws it.

    sigma: for pixels in [-1, 1]. If it is too small, the difference is lost in the rounding of the logits. With D of a
    default run of `gan_detach.py` the smallest that gives the exact penalty is 1e-9 in float64, 1e-5 in float32 and
    0.03 in bfloat16, where 0.01 gives 1.3 times and 0.003 four times as much.
    """
    if noise is None:
        noise = torch.randn_like(samples)
    changes = at_least_float32(discriminator((samples + sigma * noise).detach())) - at_least_float32(logits)
    return (changes.reshape(len(samples), -1).sum(1) / sigma).square().mean()


def interpolation_penalty(
    discriminator: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, mix: Tensor | None = None
) -> Tensor:
    """Mean over samples of `(|dD/dx| - 1)^2` at points between real and fake samples, a 0-d tensor.

    real, fake: (N, ...), of one shape; neither gets a gradient. mix: the weight of each real sample, (N,) in [0, 1];
    None draws it.
    """
    if mix is None:
        mix = torch.rand(len(real), device=real.device)
    mix = mix.to(real.dtype).view(-1, *[1] * (real.ndim - 1))
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
