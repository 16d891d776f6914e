"""A weight is given to one optimizer twice."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("appear in more than one parameter group", "parameter group with duplicate parameters")
WHY = """Two networks that share a layer, or one network named in two groups. Within one group it is only a
warning, and the weight takes each step twice."""
CURE = "One group for each weight; list(dict.fromkeys(weights)) drops repetitions and keeps the order."
RIGHT_RETURNS = 2


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    discriminator.weight = generator.weight
    groups = [{"params": generator.weight}, {"params": discriminator.weight}]
    return len(torch.optim.SGD(groups, lr=1.0).param_groups)


def right():
    generator, discriminator, _, _ = one_weight_gan()
    groups = [{"params": generator.weight}, {"params": discriminator.weight}]
    return len(torch.optim.SGD(groups, lr=1.0).param_groups)
