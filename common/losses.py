"""GAN losses on logits of any shape; there are no label tensors, which could have the wrong shape.

Cross-entropy: Goodfellow et al., "Generative Adversarial Networks" (2014), section 3. Least squares: Mao et al., "Least
Squares Generative Adversarial Networks" (2017), with CycleGAN's targets, 1 for real and 0 for fake. Hinge: Lim and Ye,
"Geometric GAN" (2017). Relativistic: Jolicoeur-Martineau (2019), without its output function, as in Huang et al., "The
GAN is dead; long live the GAN!" (2024). Penalties: Mescheder et al., "Which Training Methods for GANs do actually
Converge?" (2018); the approximate one, Lin et al., "Diffusion Adversarial Post-Training for One-Step Video Generation"
(2025); between real and fake, Gulrajani et al., "Improved Training of Wasserstein GANs" (2017).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def discriminator_loss(real_logits: Tensor, fake_logits: Tensor) -> Tensor:
    """Mean of the two halves, `(BCE(D(x), 1) + BCE(D(G(z)), 0)) / 2`; logits of any shape in, a 0-d tensor out."""
    real_logits, fake_logits = at_least_float32(real_logits), at_least_float32(fake_logits)
    # BCE on logits is -logsigmoid(logits) for real and -logsigmoid(-logits) for fake, stable for logits of any size.
    return -(F.logsigmoid(real_logits).mean() + F.logsigmoid(-fake_logits).mean()) / 2


def generator_loss(fake_logits: Tensor) -> Tensor:
    """`BCE(D(G(z)), 1)`, the non-saturating form; logits of any shape in, a 0-d tensor out."""
    return -F.logsigmoid(at_least_float32(fake_logits)).mean()


def least_squares_discriminator_loss(real_logits: Tensor, fake_logits: Tensor) -> Tensor:
    """Mean of the two halves, `((D(x) - 1)^2 + D(G(z))^2) / 2`; logits of any shape in, a 0-d tensor out."""
    real_logits, fake_logits = at_least_float32(real_logits), at_least_float32(fake_logits)
    return ((real_logits - 1).square().mean() + fake_logits.square().mean()) / 2


def least_squares_generator_loss(fake_logits: Tensor) -> Tensor:
    """`(D(G(z)) - 1)^2`; logits of any shape in, a 0-d tensor out."""
    return (at_least_float32(fake_logits) - 1).square().mean()


def hinge_discriminator_loss(real_logits: Tensor, fake_logits: Tensor) -> Tensor:
    """Mean of the two halves, `(relu(1 - D(x)) + relu(1 + D(G(z)))) / 2`; logits of any shape in, a 0-d tensor out."""
    real_logits, fake_logits = at_least_float32(real_logits), at_least_float32(fake_logits)
    return (F.relu(1 - real_logits).mean() + F.relu(1 + fake_logits).mean()) / 2


def hinge_generator_loss(fake_logits: Tensor) -> Tensor:
    """`-D(G(z))`; logits of any shape in, a 0-d tensor out."""
    return -at_least_float32(fake_logits).mean()


def at_least_float32(logits: Tensor) -> Tensor:
    """Return bfloat16 and float16 logits, as autocast makes them, in float32, and all others as they are."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


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
