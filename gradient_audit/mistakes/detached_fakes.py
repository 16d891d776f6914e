"""detach() between two networks that learn together."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """No gradient passes detach(): the first network's gradients stay None, and the optimizer skips such
weights without a warning. The network is not trained."""
CURE = """detach() only where one loss must not reach a network; not between networks under one optimizer. After a
backward(), check for weights whose .grad is None."""
WRONG_RETURNS = (None, [[0.5]])
RIGHT_RETURNS = ([[0.49]], [[0.01]])


def wrong():
    first, second, _, _ = one_weight_gan()
    both = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.SGD(both, lr=1.0)
    loss = second(first(torch.ones(1, 1)).detach()) ** 2
    loss.backward()
    optimizer.step()
    return first.weight.grad, first.weight


def right():
    first, second, _, _ = one_weight_gan()
    both = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.SGD(both, lr=1.0)
    loss = second(first(torch.ones(1, 1))) ** 2
    loss.backward()
    optimizer.step()
    return first.weight.grad, first.weight
