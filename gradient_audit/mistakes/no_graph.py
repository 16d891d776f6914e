"""backward() on a loss computed under no_grad()."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("does not require grad and does not have a grad_fn",)
HINTS = ("no_grad()",)
WHY = "Under no_grad() nothing is recorded, even if the weights require grad. The loss has no graph for backward()."
CURE = "Use no_grad() only for what gets no gradient, as the fakes that D is trained on."
RIGHT_RETURNS = [[0.35]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    with torch.no_grad():
        d_loss = discriminator(generator(torch.ones(1, 1))) ** 2
    d_loss.backward()
    return discriminator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    with torch.no_grad():
        fake = generator(torch.ones(1, 1))
    (discriminator(fake) ** 2).backward()
    return discriminator.weight.grad
