"""GAN losses on logits of any shape; there are no label tensors, which could have the wrong shape.

Cross-entropy: Goodfellow et al., "Generative Adversarial Networks" (2014), section 3.
"""

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


def at_least_float32(logits: Tensor) -> Tensor:
    """Return bfloat16 and float16 logits, as autocast makes them, in float32, and all others as they are."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
