"""A fused optimizer steps between two backward()."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """Adam, AdamW, SGD and Adagrad with fused=True change weights without raising their _version:
step-between-backwards gives no error, but 0.245 = 2 * 0.5 * 0.7 * 0.35 in place of 0.1225 = 2 * 0.5 * 0.35 * 0.35."""
CURE = """After D's step, run D again on the same fakes. The default form of the optimizer reports the mistake; a fused
one does after optimizer.register_step_post_hook(lambda *_: torch.autograd.graph.increment_version(weights))."""
WRONG_RETURNS = [[0.245]]
RIGHT_RETURNS = [[0.1225]]


def wrong():
    generator, discriminator, optimizer_g, _ = one_weight_gan()
    optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=1.0, fused=True)
    score = discriminator(generator(torch.ones(1, 1)))
    (score**2).backward(retain_graph=True)
    optimizer_d.step()  # 0.7 becomes 0.35
    optimizer_g.zero_grad()
    (score**2).backward()  # no error
    return generator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=1.0, fused=True)
    fake = generator(torch.ones(1, 1))
    (discriminator(fake.detach()) ** 2).backward()
    optimizer_d.step()
    (discriminator(fake) ** 2).backward()
    return generator.weight.grad
