"""D steps between two backward() of one forward pass."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("variables needed for gradient computation", "modified by an inplace operation")
HINTS = ("Tensor [#]] is at version 2; expected version 1",)
WHY = """G's gradient depends on D's weights as they were in the forward pass; step() has overwritten them in place. The
tensor that the message names is a weight of D: compare its shape with your layers; a Linear's is transposed there."""
CURE = """After D's step, run D again on the same fakes. Or call backward() of both losses before either optimizer
steps, each with inputs=list(network.parameters()) of its own network. inplace=False on activations does not help."""
RIGHT_RETURNS = [[-0.5775]]


def wrong():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    score = discriminator(generator(torch.ones(1, 1)))
    d_loss, g_loss = score**2, (score - 1) ** 2
    d_loss.backward(retain_graph=True)
    optimizer_d.step()  # changes the weights that `score` came from
    optimizer_g.zero_grad()
    g_loss.backward()
    return generator.weight.grad


def right():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    optimizer_d.step()
    ((discriminator(fake) - 1) ** 2).backward()  # D as it is now
    return generator.weight.grad
