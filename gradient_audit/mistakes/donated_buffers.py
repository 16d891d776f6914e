"""retain_graph=True through a compiled network."""

import torch
import torch._functorch.config

MESSAGES = ("compiled with non-empty donated buffers",)
WHY = "A backward pass compiled for a graph used once overwrites saved tensors, which a retained graph needs."
CURE = """An order without retain_graph, such as G's loss on fakes that D saw detached. Or, before the first
compilation, torch._functorch.config.donated_buffer = False, which costs some memory."""
RIGHT_RETURNS = 0.4937


def wrong():
    x = torch.tensor(1.0, requires_grad=True)
    judge = torch.compile(lambda x: x.tanh().tanh(), backend="aot_eager")
    judge(x).backward()
    judge(x).backward(retain_graph=True)
    return x.grad


def right():
    x = torch.tensor(1.0, requires_grad=True)
    with torch._functorch.config.patch(donated_buffer=False):
        judge = torch.compile(lambda x: x.tanh().tanh(), backend="aot_eager")
        judge(x).backward()
        judge(x).backward(retain_graph=True)
    return x.grad
