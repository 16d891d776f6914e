"""A fused optimizer steps between two backward passes of one graph."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """Autograd compares the version of each weight with that of the forward pass. The fused forms of Adam, AdamW, SGD
and Adagrad change weights without raising their version, so the same order of calls that is an error with
`fused=False` gives G a gradient that mixes D's old and new weight, in silence."""
CURE = """Compute D's pass on the fakes again after D's step, or step after the last backward(). To get the error back,
take `fused=False`, or raise the versions in a hook: torch.autograd.graph.increment_version(weights)."""


def wrong():
    """G's gradient is 2 * 0.5 * (0.7 * 0.35) = 0.245, of D's old weight and its new one."""
    generator, discriminator = one_weight_gan()
    optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=1.0, fused=True)
    fake = generator(torch.ones(1, 1))
    d_loss, g_loss = discriminator(fake.detach()) ** 2, discriminator(fake) ** 2
    d_loss.backward()
    optimizer_d.step()
    g_loss.backward(inputs=list(generator.parameters()))
    assert abs(generator.weight.grad.item() - 0.245) < 1e-6


def right():
    """G's gradient is 2 * 0.5 * 0.35^2 = 0.1225, of the D just updated."""
    generator, discriminator = one_weight_gan()
    optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=1.0, fused=True)
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    optimizer_d.step()
    (discriminator(fake) ** 2).backward(inputs=list(generator.parameters()))
    assert abs(generator.weight.grad.item() - 0.1225) < 1e-6
