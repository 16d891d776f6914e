"""Compiled networks. The backend "aot_eager" shows what any backend does, without a compiler."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch._functorch.config

from common.pitfalls.engine import pitfall


@pitfall(wrong=RuntimeError, right=[[0.62204]], errors=("compiled with non-empty donated buffers",))
class DonatedBuffers:
    """retain_graph=True through a compiled network.

    The compiled backward pass overwrites the tensors that the forward pass saved, if it was compiled, now or in the
    cache, for a graph that is used once. A retained graph needs these tensors again.

    An order without retain_graph, such as G's loss on fakes that D saw detached. Or, before the first compilation,
    torch._functorch.config.donated_buffer = False, which costs some memory.
    """

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


@pitfall(
    wrong=RuntimeError,
    right=[[2.744]],
    errors=("torch.compile with aot_autograd does not currently support double backward",),
)
class CompiledPenalty:
    """A gradient penalty through a compiled network.

    torch.compile compiles a forward and a backward pass, but no derivative of the backward pass. Where the compiled
    backward pass uses donated buffers, the message is that of donated-buffers, because create_graph=True keeps the
    graph.

    Use the plain network for the penalty, compiled._orig_mod, which has the same weights; the rest may use the compiled
    one.
    """

    def wrong():
        x = torch.ones(1, 1, requires_grad=True)
        weight = torch.full((1, 1), 0.7, requires_grad=True)

        @torch.compile(backend="aot_eager")
        def judge(x):
            return (x @ weight) ** 2

        with torch._functorch.config.patch(donated_buffer=False):
            (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
            (slope**2 / 2).backward()
        return weight.grad

    def right():
        x = torch.ones(1, 1, requires_grad=True)
        weight = torch.full((1, 1), 0.7, requires_grad=True)

        def judge(x):
            return (x @ weight) ** 2

        (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
        (slope**2 / 2).backward()  # slope = 2 weight^2 x
        return weight.grad


@pitfall(
    wrong=RuntimeError,
    right=[[1.4]],
    errors=(
        "Unsupported Tensor.backward() call",
        "Unsupported: Tensor.backward",
        "Unsupported: using `torch.autograd.grad`",
        "torch.* op returned non-Tensor",
        "Attempted to call `torch.autograd.grad` with config",
    ),
)
class CompiledStep:
    """backward() inside what is compiled whole.

    torch.compile(step, fullgraph=True) must trace everything in it, and backward() is not traced. Without fullgraph the
    graph breaks there.

    Compile the networks, not the step.
    """

    def wrong():
        x, weight = torch.ones(1, 1), torch.full((1, 1), 0.7, requires_grad=True)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def step(x):
            ((x @ weight) ** 2).sum().backward()

        step(x)
        return weight.grad

    def right():
        x, weight = torch.ones(1, 1), torch.full((1, 1), 0.7, requires_grad=True)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def judge(x):
            return (x @ weight) ** 2

        judge(x).sum().backward()
        return weight.grad


@pitfall(
    wrong=RuntimeError,
    right=[[0.7]],
    errors=("Data-dependent branching", "Dynamic control flow is not supported", "data-dependent jump"),
)
class CompiledBranch:
    """`if` on a tensor's value in what is compiled whole.

    The branch depends on numbers that are known only at run time. With fullgraph=True it is an error; without, the
    graph breaks there, and the network is slower.

    torch.where(condition, a, b), clamp(), or the `if` outside the network.
    """

    def wrong():
        x = torch.full((1, 1), 0.7)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def network(x):
            return x if x.sum() > 0 else -x

        return network(x)

    def right():
        x = torch.full((1, 1), 0.7)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def network(x):
            return torch.where(x.sum() > 0, x, -x)

        return network(x)
