"""Silent: a wrapper, a copy or a sum has hidden what happens to the original."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import weakref

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from common.pitfalls.engine import pitfall


@pitfall(wrong=3, right=0)
class LossesSummed:
    """Memory grows: losses are summed with their graphs.

    total += loss keeps the graph of every loss since the sum began, and what the graph has saved: here the images. A
    backward() of each loss frees what its graph has saved, but not the graph; without one, as in a validation, memory
    grows by all activations of every batch. The number is how many of three batches are still in memory.

    total += loss.item() or loss.detach(), and a validation under torch.no_grad().
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        total, batches = 0.0, []
        for _ in range(3):
            images = torch.ones(2)
            batches.append(weakref.ref(images))
            total = total + (weight * images).sum()
            del images
        return sum(batch() is not None for batch in batches)

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        total, batches = 0.0, []
        for _ in range(3):
            images = torch.ones(2)
            batches.append(weakref.ref(images))
            total = total + (weight * images).sum().item()
            del images
        return sum(batch() is not None for batch in batches)


@pitfall(wrong=([0.0], [1.0]), right=([5.0], [3.33333]))
class AverageWithoutBuffers:
    """An EMA of the weights that leaves out the buffers.

    parameters() has no buffers: the running mean and variance of a BatchNorm in the average stay at 0 and 1, as they
    were when the copy was made. In eval() the average normalises with them, and its samples are wrong, although the
    average of the weights is right.

    Copy the buffers after each step, as here and as torch.optim.swa_utils.AveragedModel does.
    """

    def wrong():
        network, average = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
        batch = torch.tensor([[3.0], [4.0], [6.0], [7.0]])
        for _ in range(200):
            network(batch)
            new = dict(network.named_parameters())
            with torch.no_grad():
                for name, mean in average.named_parameters():
                    mean.lerp_(new[name], 0.1)
        return average.running_mean, average.running_var

    def right():
        network, average = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
        batch = torch.tensor([[3.0], [4.0], [6.0], [7.0]])
        for _ in range(200):
            network(batch)
            new = network.state_dict()
            with torch.no_grad():
                for name, mean in average.named_parameters():
                    mean.lerp_(new[name], 0.1)
                for name, buffer in average.named_buffers():
                    buffer.copy_(new[name])
        return average.running_mean, average.running_var


@pitfall(
    wrong=0.00625,
    right=0.025,
    errors=("Detected call of `lr_scheduler.step()` before `optimizer.step()`",),
    hints=("accelerate", "AcceleratedOptimizer", "accumulat", "deepspeed", "skip_scheduler"),
)
class WrapperSkipsStep:
    """A wrapper's step() that does not always step.

    Wrappers that accumulate gradients step at every n-th call only, and a GradScaler does not step when a gradient is
    not finite. What the loop does after each call (a schedule, an EMA, a counter of steps) is done too often. If the
    first call is skipped, the schedule warns as in scheduler-first.

    A hook on the optimizer inside, optimizer.register_step_post_hook(), which runs after each true step and no other.
    """

    def wrong():
        class Accumulating:
            calls = 0

            def step(self):
                self.calls += 1
                if self.calls % 2 == 0:
                    inner.step()

        weight = torch.ones(1, requires_grad=True)
        inner = torch.optim.SGD([weight], lr=0.1)
        optimizer, scheduler = Accumulating(), StepLR(inner, 1, gamma=0.5)
        for _ in range(4):
            weight.sum().backward()
            optimizer.step()  # steps twice
            scheduler.step()  # four times
        return inner.param_groups[0]["lr"]

    def right():
        class Accumulating:
            calls = 0

            def step(self):
                self.calls += 1
                if self.calls % 2 == 0:
                    inner.step()

        weight = torch.ones(1, requires_grad=True)
        inner = torch.optim.SGD([weight], lr=0.1)
        optimizer, scheduler = Accumulating(), StepLR(inner, 1, gamma=0.5)
        inner.register_step_post_hook(lambda *_: scheduler.step())
        for _ in range(4):
            weight.sum().backward()
            optimizer.step()
        return inner.param_groups[0]["lr"]


@pitfall(wrong=[0.99219], right=[0.0])
class WrapperUnscaledTwice:
    """unscale_() of an optimizer, step() of its wrapper.

    A GradScaler keeps its account by object: it knows that the inner optimizer's gradients are unscaled, and does not
    know it of the wrapper. step() divides them a second time, and the step is 128 times too small, without an error.

    Give unscale_() and step() the same object.
    """

    def wrong():
        class Wrapper:
            def __init__(self, inner):
                self.param_groups, self.step = inner.param_groups, inner.step

        weight = torch.ones(1, requires_grad=True)
        inner = torch.optim.SGD([weight], lr=1.0)
        optimizer = Wrapper(inner)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(inner)
        scaler.step(optimizer)
        return weight

    def right():
        class Wrapper:
            def __init__(self, inner):
                self.param_groups, self.step = inner.param_groups, inner.step

        weight = torch.ones(1, requires_grad=True)
        inner = torch.optim.SGD([weight], lr=1.0)
        optimizer = Wrapper(inner)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        return weight
