"""Silent: PyTorch's check of stale values is bypassed, and the gradient mixes old and new."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
from torch.utils.checkpoint import checkpoint

from common.pitfalls.engine import one_weight_gan, pitfall


@pitfall(wrong=([[0.245]], 0), right=([[0.1225]], 1))
class FusedStep:
    """A fused optimizer steps between two backward().

    Adam, AdamW, SGD and Adagrad with fused=True change weights without raising their _version, in PyTorch 2.6.0 and
    2.15.0 alike. The mistake of step-between-backwards then gives no error, but a gradient of old and new weights:
    0.245 = 2 * 0.5 * 0.7 * 0.35, in place of 0.1225 = 2 * 0.5 * 0.35 * 0.35. The same happens with compiled networks.

    Use the default form of the optimizer, which is checked; or raise _version after each step, as the right form does.
    Then the mistake is an error again, and D has to run once more.
    """

    def wrong():
        generator, discriminator, optimizer_g, _ = one_weight_gan()
        weights = list(discriminator.parameters())
        optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)
        before = discriminator.weight._version
        score = discriminator(generator(torch.ones(1, 1)))
        (score**2).backward(retain_graph=True)
        optimizer_d.step()  # 0.7 becomes 0.35
        optimizer_g.zero_grad()
        (score**2).backward()  # no error
        return generator.weight.grad, discriminator.weight._version - before

    def right():
        generator, discriminator, optimizer_g, _ = one_weight_gan()
        weights = list(discriminator.parameters())
        optimizer_d = torch.optim.SGD(weights, lr=1.0, fused=True)

        def raise_version(*_):
            torch.autograd.graph.increment_version(weights)

        optimizer_d.register_step_post_hook(raise_version)
        before = discriminator.weight._version
        fake = generator(torch.ones(1, 1))
        (discriminator(fake.detach()) ** 2).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        (discriminator(fake) ** 2).backward()  # with the old score: an error
        return generator.weight.grad, discriminator.weight._version - before


@pitfall(wrong=[[0.245]], right=[[0.1225]])
class CheckpointedStep:
    """D steps between two backward() of a checkpointed D.

    A checkpoint saves no weights and runs D again in backward(), with its current weights; they are not compared with
    those of the first run. The mistake of step-between-backwards gives no error, with any optimizer, and a mixed
    gradient. saved_tensors_hooks, such as save_on_cpu(), bypass the check as well.

    After D's step, run D again on the same fakes.
    """

    def wrong():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake, use_reentrant=False)
        (score**2).backward(retain_graph=True)
        optimizer_d.step()
        optimizer_g.zero_grad()
        (score**2).backward()
        return generator.weight.grad

    def right():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        score = checkpoint(discriminator, fake.detach(), use_reentrant=False)
        (score**2).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        score = checkpoint(discriminator, fake, use_reentrant=False)
        (score**2).backward()
        return generator.weight.grad


@pitfall(wrong=0.0, right=0.1748)
class AutocastCache:
    """A whole step under one autocast: D's step is not seen.

    autocast keeps the half-precision copies of weights until its block ends. D's second forward pass uses the copies
    from before its step, so G is trained against the old D. Here D's score of 0.5 changes by 0.175, or not at all.

    A block for each forward pass; or torch.autocast(..., cache_enabled=False) around the step.
    """

    def wrong():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        with torch.autocast("cpu", torch.bfloat16):
            fake = generator(torch.ones(1, 1))
            before = discriminator(fake.detach())
            (before**2).backward()
            optimizer_d.step()
            after = discriminator(fake)
        return (before - after).abs().sum()

    def right():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            fake = generator(torch.ones(1, 1))
            before = discriminator(fake.detach())
            (before**2).backward()
            optimizer_d.step()
            after = discriminator(fake)
        return (before - after).abs().sum()


@pitfall(wrong=([0.0, 0.0], 0), right=([6.0, 10.0], 0))
class DataEdit:
    """An edit through .data between forward and backward.

    .data shares the memory of b but not its _version counter, which stays at 0: autograd computes 2 b with the zeros
    and cannot detect it.

    Do not use .data. detach() shares the memory as well, but the edit is caught: see edit-through-detach. To edit
    freely, detach().clone(); to change a weight, torch.no_grad().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.data.zero_()
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().clone().zero_()
        loss.backward()
        return a.grad, b._version


@pitfall(wrong=([0.0, 0.0], 0), right=([6.0, 10.0], 0))
class NumpyEdit:
    """An edit of a NumPy array that shares a tensor's memory.

    On the CPU .numpy() makes no copy, and NumPy raises no _version: scaling images for display changes values that the
    backward pass needs. The same holds for torch.from_numpy(), DLPack and untyped_storage().

    .numpy().copy(), or arithmetic that makes a new array: images = images / 2 + 0.5.
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        image = b.detach().numpy()
        image *= 0.0
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        image = b.detach().numpy()
        image = image * 0.0
        loss.backward()
        return a.grad, b._version
