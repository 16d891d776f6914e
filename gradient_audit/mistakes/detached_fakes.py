"""detach() between two networks that learn together."""

import torch

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    "backward through the graph a second time",
    "生成器…没有…梯度|生成器…梯度…none|生成器…不到梯度|生成器…不更新|生成器…没有更新|生成器…参数…不变",
)
WHY = """No gradient passes detach(): the .grad of what comes before stays None, and the optimizer skips such weights
without a warning; backward() raises where nothing else is left. A G loss on D's scores of fake.detach() finds that D's
loss has freed their graph; with retain_graph=True it reaches D alone."""
CURE = """detach() only where one loss must not reach a network; not between networks under one optimizer. After a
backward(), check for weights whose .grad is None."""
WRONG_RETURNS = [[0.5]]
RIGHT_RETURNS = [[0.01]]


def wrong():
    first, second, _, _ = one_weight_gan()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1.0)
    (second(first(torch.ones(1, 1)).detach()) ** 2).backward()
    optimizer.step()
    return first.weight


def right():
    first, second, _, _ = one_weight_gan()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1.0)
    (second(first(torch.ones(1, 1))) ** 2).backward()
    optimizer.step()
    return first.weight
