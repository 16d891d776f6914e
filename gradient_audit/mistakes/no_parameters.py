"""An optimizer without parameters: an iterator used up."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("optimizer got an empty parameter list",)
WHY = """parameters() is an iterator that can be used once. If they are counted first, the optimizer gets none. Layers
kept in a Python list in place of nn.ModuleList have no parameters either."""
CURE = "list(network.parameters()) if they are needed twice; nn.ModuleList for layers."
RIGHT_RETURNS = 1


def wrong():
    generator, _, _, _ = one_weight_gan()
    weights = generator.parameters()
    count = sum(weight.numel() for weight in weights)
    torch.optim.SGD(weights, lr=1.0)
    return count


def right():
    generator, _, _, _ = one_weight_gan()
    weights = list(generator.parameters())
    count = sum(weight.numel() for weight in weights)
    torch.optim.SGD(weights, lr=1.0)
    return count
