"""D is frozen and the fakes are detached: nothing left."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("does not require grad and does not have a grad_fn",)
HINTS = ("requires_grad = False",)
WHY = "An output requires grad if a weight or an input does: D's weights are frozen, and detach() cuts off G's."
CURE = "Detach the fakes in D's loss, never in G's. print(loss.requires_grad) tells whether there is a graph."
RIGHT_RETURNS = [[0.49]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)
    fake = generator(torch.ones(1, 1)).detach()
    (discriminator(fake) ** 2).backward()
    return generator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)
    fake = generator(torch.ones(1, 1))
    (discriminator(fake) ** 2).backward()
    return generator.weight.grad
