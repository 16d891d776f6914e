"""scaler.step() of an optimizer that has no gradients, or scaler.update() in a turn without a step()."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("No inf checks were recorded", "_scale is None", "_growth_tracker is None")
WHY = """The scaler found no gradients for this optimizer: backward() of its loss was not called, reached other weights,
or the loss was not scaled. "prior to update" says that update() came in a turn of the loop without step()."""
CURE = """scaler.scale(g_loss).backward() before scaler.step(optimizer_g), or, where G has none in this turn, skip that
step; one scaler, and one update() for both, only after a step(), as in the last turn of an accumulation."""
RIGHT_RETURNS = [[0.01]]


def wrong():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    scaler = torch.amp.GradScaler("cpu")
    fake = generator(torch.ones(1, 1))
    scaler.scale(discriminator(fake.detach()) ** 2).backward()
    scaler.step(optimizer_d)
    scaler.step(optimizer_g)  # G's loss has not gone backward
    scaler.update()
    return generator.weight


def right():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    scaler = torch.amp.GradScaler("cpu")
    fake = generator(torch.ones(1, 1))
    scaler.scale(discriminator(fake.detach()) ** 2).backward()
    scaler.scale(discriminator(fake) ** 2).backward(inputs=list(generator.parameters()))
    scaler.step(optimizer_d)
    scaler.step(optimizer_g)
    scaler.update()
    return generator.weight
