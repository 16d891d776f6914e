"""Both losses go backward, and D steps on the sum."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = "backward() adds to .grad of all weights in the graph, of D's as well in G's loss. D steps on the sum of both."
CURE = """Name the weights a loss is for: g_loss.backward(inputs=list(generator.parameters())). Or freeze D with
requires_grad_(False) during G's backward(), or clear D's gradient before D's own loss."""
WRONG_RETURNS = [[0.7]]
RIGHT_RETURNS = [[0.35]]


def wrong():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    (discriminator(fake) ** 2).backward()  # adds to D's gradient
    optimizer_d.step()
    return discriminator.weight.grad


def right():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    (discriminator(fake) ** 2).backward(inputs=list(generator.parameters()))
    optimizer_d.step()
    return discriminator.weight.grad
