"""retain_graph=True through a compiled network."""

import torch
import torch._functorch.config

MESSAGES = ("compiled with non-empty donated buffers",)
WHY = """The compiled backward pass overwrites the tensors that the forward pass saved, if it was compiled, now or
in the cache, for a graph that is used once. A retained graph needs these tensors again."""
CURE = """An order without retain_graph, such as G's loss on fakes that D saw detached. Or, before the first
compilation, torch._functorch.config.donated_buffer = False, which costs some memory."""
RIGHT_RETURNS = [[0.62204]]


def wrong():
    x, weight = torch.ones(1, 1, requires_grad=True), torch.full((1, 1), 0.7)

    @torch.compile(backend="aot_eager")
    def judge(x):
        return (x @ weight).tanh() @ weight

    judge(x).backward()
    judge(x).backward(retain_graph=True)
    return x.grad


def right():
    x, weight = torch.ones(1, 1, requires_grad=True), torch.full((1, 1), 0.7)
    with torch._functorch.config.patch(donated_buffer=False):

        @torch.compile(backend="aot_eager")
        def judge(x):
            return (x @ weight).tanh() @ weight

        judge(x).backward()
        judge(x).backward(retain_graph=True)
    return x.grad
