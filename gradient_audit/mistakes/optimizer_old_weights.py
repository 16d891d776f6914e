"""The optimizer holds weights the network no longer uses."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """An optimizer keeps the tensors it was given. load_state_dict(assign=True), a layer replaced later, or a network
built anew give the network other tensors; step() changes the old ones, and the network is not trained."""
CURE = "Make the optimizer last; or load_state_dict() without assign, which copies values into the same tensors."
WRONG_RETURNS = [[0.7]]
RIGHT_RETURNS = [[0.35]]


def wrong():
    _, discriminator, _, optimizer_d = one_weight_gan()
    discriminator.load_state_dict({"weight": torch.full((1, 1), 0.7)}, assign=True)
    (discriminator(torch.full((1, 1), 0.5)) ** 2).backward()
    optimizer_d.step()
    return discriminator.weight


def right():
    _, discriminator, _, optimizer_d = one_weight_gan()
    discriminator.load_state_dict({"weight": torch.full((1, 1), 0.7)})
    (discriminator(torch.full((1, 1), 0.5)) ** 2).backward()
    optimizer_d.step()
    return discriminator.weight
