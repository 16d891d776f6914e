"""Two losses over one shared graph, backward() twice."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("backward through the graph a second time",)
WHY = """backward() frees the graph it went through, to save memory. Both losses here depend on G, so the first
backward() frees the graph that the second needs."""
CURE = """fake.detach() in the loss that is not for G. If both losses are for the same weights, add them and call
backward() once. retain_graph=True also silences the error, but leaves a gradient of D's loss in G, to be cleared."""
RIGHT_RETURNS = [[-0.91]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake) ** 2
    g_loss = (discriminator(fake) - 1) ** 2
    d_loss.backward()  # goes through G, too, and frees G's graph
    g_loss.backward()  # needs G's graph
    return generator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake.detach()) ** 2  # this loss ends at the fakes
    g_loss = (discriminator(fake) - 1) ** 2
    d_loss.backward()
    g_loss.backward()
    return generator.weight.grad
