"""D steps between two backward() of a checkpointed D."""

import torch
from torch.utils.checkpoint import checkpoint

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """A checkpoint saves no weights and runs D again in backward(), with its current weights: step-between-backwards
without an error, with any optimizer. saved_tensors_hooks, such as save_on_cpu(), bypass the check as well."""
CURE = "After D's step, run D again on the same fakes."
UNSEEN = "whether D steps between a checkpointed forward pass and its last backward()."
WRONG_RETURNS = [[0.245]]
RIGHT_RETURNS = [[0.1225]]


def wrong():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    score = checkpoint(discriminator, fake, use_reentrant=False)
    (score**2).backward(retain_graph=True)
    optimizer_d.step()
    optimizer_g.zero_grad()
    (score**2).backward()
    return generator.weight.grad


def right():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    score = checkpoint(discriminator, fake.detach(), use_reentrant=False)
    (score**2).backward()
    optimizer_d.step()
    score = checkpoint(discriminator, fake, use_reentrant=False)
    (score**2).backward()
    return generator.weight.grad
