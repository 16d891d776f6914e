"""DDP: a parameter gets no gradient."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gradient_audit.mistakes.one_rank import one_rank
from gradient_audit.mistakes.one_weight import one_weight_gan

# The second is also Lightning's.
MESSAGES = ("finished reduction in the prior iteration", "parameters that were not used in producing")
MESSAGES += ("上一次迭代…归约|上一次迭代…规约|迭代之前…归约|上一轮…归约", "参数…未使用…损失")
MESSAGES += ("没有参与…损失|未参与…损失|没有参与…loss|未参与…loss",)
WHY = """DDP waits for the gradient of every parameter that requires one. For a layer that the loss does not reach it
never comes, and the next forward pass raises: a second head, a label embedding, weights that inputs= leaves out."""
CURE = "Remove or freeze the layer before wrapping; else find_unused_parameters=True, which costs a search each step."
RIGHT_RETURNS = [[2.0]]


def wrong():
    generator, _, _, _ = one_weight_gan()
    generator.spare = nn.Linear(1, 1)
    with one_rank():
        network = DistributedDataParallel(generator)
        for _ in range(2):
            network(torch.ones(1, 1)).backward()
    return generator.weight.grad


def right():
    generator, _, _, _ = one_weight_gan()
    generator.spare = nn.Linear(1, 1).requires_grad_(False)
    with one_rank():
        network = DistributedDataParallel(generator)
        for _ in range(2):
            network(torch.ones(1, 1)).backward()
    return generator.weight.grad
