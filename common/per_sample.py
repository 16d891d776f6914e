"""A check for update rules that need a discriminator which judges each sample independently."""

from weakref import WeakSet

import torch
from torch import Tensor, nn

BATCH_NORMS = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
CHECKED: WeakSet[nn.Module] = WeakSet()


def require_per_sample(discriminator: nn.Module, samples: Tensor) -> None:
    """Raise ValueError if a logit of `discriminator` depends on other samples of its batch.

    samples: (N, ...), as the discriminator takes them. Each call looks for batch normalisation layers. Other
    layers that mix samples are found by an extra forward pass in evaluation mode, the first time that a discriminator
    is checked with N > 1. The state of the discriminator and of the random number generators does not change.
    """
    for name, module in discriminator.named_modules():
        if isinstance(module, BATCH_NORMS) and (module.training or module.running_mean is None):
            raise ValueError(
                f"the discriminator's layer {name or 'itself'} is a {type(module).__name__}, which normalises over the "
                "batch, but here each sample must be judged independently; use GroupNorm or InstanceNorm"
            )
    if discriminator in CHECKED or len(samples) < 2:
        return
    modes = {module: module.training for module in discriminator.modules()}
    discriminator.eval()  # no dropout, and no buffer is changed
    try:
        # Compiling for this one call would take long.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            changed = torch.cat([samples[:1], samples[1:] / 2 + 1])  # no value in [-1, 1] stays the same
            first, again = (discriminator(batch)[0].double() for batch in (samples, changed))
    finally:
        for module, mode in modes.items():
            module.training = mode
    if not torch.allclose(first, again, rtol=1e-4, atol=1e-4):
        raise ValueError(
            "the discriminator's logit of one sample depends on the other samples of the batch, but here each sample "
            "must be judged independently; remove the layer that mixes samples"
        )
    CHECKED.add(discriminator)
