"""autograd.grad() or inputs= through a checkpoint."""

import torch
from torch.utils.checkpoint import checkpoint

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible",
    "Checkpointing is not compatible with .grad()",
)
WHY = """The old form runs a backward pass of its own inside, for all weights, so it cannot be used for a gradient
penalty or backward(inputs=...). If inputs= names only weights inside, nothing is computed, in silence."""
CURE = "use_reentrant=False."
RIGHT_RETURNS = ([[0.49]],)


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    score = checkpoint(discriminator, fake, use_reentrant=True)
    return torch.autograd.grad(score**2, generator.weight)


def right():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    score = checkpoint(discriminator, fake, use_reentrant=False)
    return torch.autograd.grad(score**2, generator.weight)
