"""A check for update rules that need a discriminator to judge each sample by itself."""

from weakref import WeakSet

import torch
from torch import Tensor, nn

BATCH_NORMS = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
CHECKED: WeakSet[nn.Module] = WeakSet()


def require_per_sample(discriminator: nn.Module, samples: Tensor) -> None:
    """Raise ValueError where a logit of `discriminator` depends on other samples of its batch.

    samples: (N, ...), as the discriminator takes them. Batch normalisation is looked for at each call. Any other look
    across the batch is found by one more forward pass, in evaluation mode, the first time that a discriminator comes
    with N > 1; its state and the random number generators stay as they are.
    """
    for name, module in discriminator.named_modules():
        if isinstance(module, BATCH_NORMS) and (module.training or module.running_mean is None):
            raise ValueError(
                f"the discriminator's layer {name or 'itself'} is a {type(module).__name__}, which normalises over the "
                "batch, but here each sample must be judged by itself; use GroupNorm or InstanceNorm"
            )
    if discriminator in CHECKED or len(samples) < 2:
        return
    modes = {module: module.training for module in discriminator.modules()}
    discriminator.eval()  # no dropout, and no buffer is changed
    try:
        # Compiled for one call, in a mode of its own, would be long to wait for.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            changed = torch.cat([samples[:1], samples[1:] / 2 + 1])  # no value in [-1, 1] stays the same
            first, again = (discriminator(batch)[0].double() for batch in (samples, changed))
    finally:
        for module, mode in modes.items():
            module.training = mode
    if not torch.allclose(first, again, rtol=1e-4, atol=1e-4):
        raise ValueError(
            "the discriminator's logit of one sample depends on the other samples of the batch, but here each sample "
            "must be judged by itself; leave out the layer that looks across the batch"
        )
    CHECKED.add(discriminator)
