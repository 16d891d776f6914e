"""Two losses over one shared graph, backward() twice."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("backward through the graph a second time",)
WHY = "backward() frees the graph it went through. Both losses depend on G, and the first frees G's graph."
CURE = """fake.detach() in the loss that is not for G. If both losses are for the same weights, add them and call
backward() once. retain_graph=True also silences the error, but leaves a gradient of D's loss in G, to be cleared."""
RIGHT_RETURNS = [[-0.91]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    (discriminator(fake) ** 2).backward()  # goes through G, too, and frees G's graph
    ((discriminator(fake) - 1) ** 2).backward()  # needs G's graph
    return generator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()  # this loss ends at the fakes
    ((discriminator(fake) - 1) ** 2).backward()
    return generator.weight.grad
