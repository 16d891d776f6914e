"""A fused optimizer steps between two backward()."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """Adam, AdamW, SGD and Adagrad with fused=True change weights without raising their _version, in PyTorch
2.6.0 and 2.15.0 alike. The mistake of step-between-backwards then gives no error, but a gradient of old and new
weights: 0.245 = 2 * 0.5 * 0.7 * 0.35, in place of 0.1225 = 2 * 0.5 * 0.35 * 0.35. The same happens with compiled
networks."""
CURE = """Use the default form of the optimizer, which is checked; or raise _version after each step, as the right
form does. Then the mistake is an error again, and D has to run once more."""
WRONG_RETURNS = ([[0.245]], 0)
RIGHT_RETURNS = ([[0.1225]], 1)


def wrong():
    generator, discriminator, optimizer_g, _ = one_weight_gan()
    weights = list(discriminator.parameters())
    optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)
    before = discriminator.weight._version
    score = discriminator(generator(torch.ones(1, 1)))
    (score**2).backward(retain_graph=True)
    optimizer_d.step()  # 0.7 becomes 0.35
    optimizer_g.zero_grad()
    (score**2).backward()  # no error
    return generator.weight.grad, discriminator.weight._version - before


def right():
    generator, discriminator, optimizer_g, _ = one_weight_gan()
    weights = list(discriminator.parameters())
    optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)

    def raise_version(*_):
        torch.autograd.graph.increment_version(weights)

    optimizer_d.register_step_post_hook(raise_version)
    before = discriminator.weight._version
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    (discriminator(fake) ** 2).backward()  # with the old score: an error
    return generator.weight.grad, discriminator.weight._version - before
