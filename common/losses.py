"""The losses of the original GAN, on logits of any shape, without label tensors.

Binary cross-entropy on logits is `-logsigmoid(logits)` for the label "real" and `-logsigmoid(-logits)` for the label
"fake", both stable for logits of any size. No label tensor means none of the wrong shape. G's loss is the
non-saturating one of Goodfellow et al., "Generative Adversarial Networks" (2014), section 3.
"""

import torch.nn.functional as F
from torch import Tensor


def discriminator_loss(real_logits: Tensor, fake_logits: Tensor) -> Tensor:
    """Mean of the two halves, `(BCE(D(x), 1) + BCE(D(G(z)), 0)) / 2`; logits of any shape in, a 0-d tensor out."""
    return -(F.logsigmoid(real_logits).mean() + F.logsigmoid(-fake_logits).mean()) / 2


def generator_loss(fake_logits: Tensor) -> Tensor:
    """`BCE(D(G(z)), 1)`, the non-saturating form; logits of any shape in, a 0-d tensor out."""
    return -F.logsigmoid(fake_logits).mean()
