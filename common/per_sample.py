"""A check for update rules that need a discriminator which judges each sample independently."""

import torch
from torch import Tensor, nn
from torch.autograd import grad  # by this name, tools that replace torch.autograd.grad do not list it as a pass


def require_per_sample(discriminator: nn.Module, samples: Tensor) -> None:
    """Raise ValueError if a logit of `discriminator` depends on other samples of its batch.

    samples: (N, ...), as the discriminator takes them. The derivative of the first logit with respect to the other
    samples must be exactly zero. With batch normalisation in training mode or minibatch standard deviation it is not. A
    last layer that starts at zero hides it, so it is asked at the calls 1, 2, 4, 8, ... for each discriminator, with a
    pass of its own, which changes neither the state of the discriminator nor that of the random number generators.
    """
    calls = getattr(discriminator, "per_sample_calls", 0) + 1  # an attribute, so that it ends with the discriminator
    if len(samples) < 2 or calls & (calls - 1):
        discriminator.per_sample_calls = calls
        return
    wrappers = nn.DataParallel | nn.parallel.DistributedDataParallel  # whose pass may wait for that of other processes
    network = discriminator.module if isinstance(discriminator, wrappers) else discriminator
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    samples = samples.detach().requires_grad_()
    devices = [samples.device] if samples.is_cuda else []
    # Compiling for this one call would take long.
    with torch.enable_grad(), torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"):
        logits = torch.func.functional_call(network, buffers, samples)
        if not isinstance(logits, Tensor) or logits.shape[:1] != samples.shape[:1]:
            raise ValueError("the discriminator must give logits (N, ...) for N samples")
        (gradient,) = grad(logits[0].sum(), samples, allow_unused=True)
    if gradient is not None and gradient[1:].any():
        raise ValueError(
            "the discriminator's logit of one sample depends on the other samples of the batch, but here each sample "
            "must be judged independently; use GroupNorm or InstanceNorm in place of batch normalisation"
        )
    discriminator.per_sample_calls = calls
