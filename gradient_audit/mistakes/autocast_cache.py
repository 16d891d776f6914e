"""A whole step under one autocast: D's step is not seen."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """autocast keeps the half-precision copies of weights until its block ends: D's second forward pass uses those
from before its step, and G is trained against the old D. The score changes by 0 in place of 0.175."""
CURE = "A block for each forward pass; or torch.autocast(..., cache_enabled=False) around the step."
UNSEEN = "D(fake) before and after D's step: the same to the bit."
WRONG_RETURNS = [[0.0]]
RIGHT_RETURNS = [[0.1748]]


def wrong():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    with torch.autocast("cpu", torch.bfloat16):
        fake = generator(torch.ones(1, 1))
        before = discriminator(fake.detach())
        (before**2).backward()
        optimizer_d.step()
        return before - discriminator(fake)


def right():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        fake = generator(torch.ones(1, 1))
        before = discriminator(fake.detach())
        (before**2).backward()
        optimizer_d.step()
        return before - discriminator(fake)
