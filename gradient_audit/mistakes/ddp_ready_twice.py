"""DDP: a parameter has two gradients in a backward pass."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from gradient_audit.mistakes.one_rank import one_rank

MESSAGES = ("Expected to mark a variable ready only once", "has been marked as ready twice|标记…就绪|标记…ready")
WHY = """A checkpoint of the old form inside DDP, used twice on the same layer, has two backward passes; so has a
parameter used outside the wrapped forward()."""
CURE = "checkpoint(..., use_reentrant=False); and call the DDP object, not layers of its .module."
RIGHT_RETURNS = [[1.0]]


def wrong():
    class Twice(nn.Linear):
        def forward(self, x):
            once = checkpoint(super().forward, x, use_reentrant=True)
            return checkpoint(super().forward, once, use_reentrant=True)

    with one_rank():
        network = DistributedDataParallel(Twice(1, 1, bias=False), find_unused_parameters=True)
        nn.init.constant_(network.module.weight, 0.5)
        network(torch.ones(1, 1, requires_grad=True)).backward()
    return network.module.weight.grad


def right():
    class Twice(nn.Linear):
        def forward(self, x):
            once = checkpoint(super().forward, x, use_reentrant=False)
            return checkpoint(super().forward, once, use_reentrant=False)

    with one_rank():
        network = DistributedDataParallel(Twice(1, 1, bias=False))
        nn.init.constant_(network.module.weight, 0.5)
        network(torch.ones(1, 1, requires_grad=True)).backward()
    return network.module.weight.grad
