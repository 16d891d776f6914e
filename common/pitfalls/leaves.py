"""Leaves and results: what may be edited, kept, copied, frozen or optimized."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import copy
from multiprocessing.reduction import ForkingPickler

import torch

from common.pitfalls.engine import one_weight_gan, pitfall

LEAF_IN_PLACE = ("leaf Variable that requires grad",)


@pitfall(wrong=RuntimeError, right=[10.0, 7.5, 6.0, 6.5], errors=LEAF_IN_PLACE)
class LeafInPlace:
    """A weight is changed in place: a.add_(10), a += 10.

    A leaf is a tensor that no operation made, such as a weight; gradients are kept in leaves. After a recorded edit it
    would be the result of that edit, and no leaf.

    Change weights under torch.no_grad(), as optimizers do, and before the forward pass that uses them.
    """

    def wrong():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        a.add_(10)
        (a * a).mean().backward()
        return a.grad

    def right():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        with torch.no_grad():
            a.add_(10)
        (a * a).mean().backward()
        return a.grad


@pitfall(wrong=RuntimeError, right=[5.0, 5.0, 5.0, 5.0], errors=LEAF_IN_PLACE, hints=("a view of a leaf Variable",))
class LeafAssignment:
    """A weight is assigned to by index: a[:] = 0.

    An assignment by index is an in-place edit. The message of PyTorch 2.6 names a view of a leaf here, that of 2.13 and
    later a leaf. Old versions gave no error and made `a` a tensor that is no leaf, so a.grad stayed None.

    Assign under torch.no_grad(), or use torch.nn.init, which does so.
    """

    def wrong():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        a[:] = 0
        (a * a).mean().backward()
        return a.grad

    def right():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        with torch.no_grad():
            a[:] = 10
        (a * a).mean().backward()
        return a.grad


@pitfall(
    wrong=(40.0, None, None, (28.0, 8.0, 10.0)),
    right=(40.0, [[0.25, 0.25], [0.25, 0.25]], [[7.0, 7.0], [7.0, 7.0]], (28.0, 8.0, 10.0)),
    errors=("attribute of a Tensor that is not a leaf Tensor is being accessed",),
)
class GradOfNonLeaf:
    """.grad of a result is None: only leaves keep theirs.

    To save memory a backward pass drops the gradients of results on its way; only leaves that require grad, such as w1,
    w2 and w3, keep theirs. By hand: dl4 = 1/4; dl1 = (l3 + l2 w3) / 4 = (8 + 20) / 4 = 7.

    retain_grad() on the tensor before backward(). is_leaf tells which kind a tensor is.
    """

    def wrong():
        i = torch.ones(2, 2)
        w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
        l1 = i * w1
        l2, l3 = l1 + w2, l1 * w3
        l4 = l2 * l3
        loss = l4.mean()
        loss.backward()
        return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)

    def right():
        i = torch.ones(2, 2)
        w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
        l1 = i * w1
        l2, l3 = l1 + w2, l1 * w3
        l4 = l2 * l3
        loss = l4.mean()
        l1.retain_grad()
        l4.retain_grad()
        loss.backward()
        return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)


@pitfall(wrong=RuntimeError, right=[0.5, 0.7], errors=("Can't call numpy() on",))
class NumpyOfGrad:
    """numpy() on a tensor that requires grad.

    An array shares the tensor's memory, but autograd cannot follow what NumPy does to it.

    tensor.detach().cpu().numpy(), and .copy() where the array is to be changed. For one number, .item().
    """

    def wrong():
        weight = torch.tensor([0.5, 0.7], requires_grad=True)
        return weight.numpy()

    def right():
        weight = torch.tensor([0.5, 0.7], requires_grad=True)
        return weight.detach().cpu().numpy()


@pitfall(
    wrong=RuntimeError, right=(None, [[0.49]]), errors=("can't retain_grad on Tensor that has requires_grad=False",)
)
class InputsWithFrozen:
    """backward(inputs=...) names a frozen weight.

    inputs= lists the leaves to get a gradient; each must require one. A partly frozen network has weights that do not.
    retain_grad() on a tensor that does not require grad gives the same message.

    inputs=[p for p in network.parameters() if p.requires_grad].
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        loss = discriminator(generator(torch.ones(1, 1))) ** 2
        loss.backward(inputs=[*discriminator.parameters(), *generator.parameters()])
        return discriminator.weight.grad, generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        loss = discriminator(generator(torch.ones(1, 1))) ** 2
        both = [*discriminator.parameters(), *generator.parameters()]
        loss.backward(inputs=[weight for weight in both if weight.requires_grad])
        return discriminator.weight.grad, generator.weight.grad


@pitfall(wrong=ValueError, right=[0.0, -0.01], errors=("can't optimize a non-leaf Tensor",))
class OptimizeResult:
    """An optimizer gets a result in place of a leaf.

    Only a leaf keeps its gradient. Here the product is a result, and no variable holds the leaf that it was made from;
    .to(device), .cuda() or .float() after requires_grad=True do the same.

    Set requires_grad last: (torch.ones(2) * 0.01).to(device).requires_grad_(), or use nn.Parameter.
    """

    def wrong():
        z = torch.tensor([1.0, 0.0], requires_grad=True) * 0.01
        optimizer = torch.optim.SGD([z], lr=0.01)
        return optimizer.param_groups[0]["params"][0]

    def right():
        z = (torch.tensor([1.0, 0.0]) * 0.01).requires_grad_()
        optimizer = torch.optim.SGD([z], lr=0.01)
        z.sum().backward()
        optimizer.step()
        return z


@pitfall(wrong=RuntimeError, right=[[0.5]], errors=("support the deepcopy protocol",))
class DeepcopyResult:
    """deepcopy() of a network that keeps a result.

    A copy of a result would need a copy of its graph. A network that stores an output of its forward pass as an
    attribute cannot be copied for an average of the weights; nor can one with the old torch.nn.utils.weight_norm or
    spectral_norm.

    Store self.features.detach(), or nothing. For normalised weights use torch.nn.utils.parametrizations.
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        generator.last = generator(torch.ones(1, 1))
        return copy.deepcopy(generator).last

    def right():
        generator, _, _, _ = one_weight_gan()
        generator.last = generator(torch.ones(1, 1)).detach()
        return copy.deepcopy(generator).last


@pitfall(wrong=RuntimeError, right=None, errors=("you can only change requires_grad flags of leaf variables",))
class FreezeResult:
    """requires_grad = False on a result.

    A result requires grad because one of its inputs does. The flag can be changed only at leaves.

    fake.detach() gives the same values without the graph. To freeze a network: network.requires_grad_(False).
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        fake.requires_grad = False
        discriminator(fake).backward()
        return generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1)).detach()
        discriminator(fake).backward()
        return generator.weight.grad


@pitfall(
    wrong=RuntimeError,
    right=[0.0, 255.0],
    errors=(
        "of floating point and complex dtype can require gradients",
        "of floating point dtype can require gradients",
    ),
)
class IntegerRequiresGrad:
    """An integer tensor is to require grad.

    Gradients are defined for continuous values only. Images as bytes, labels, and torch.tensor([1, 2]) are integers.

    Convert first: images.float() / 255, or torch.tensor([1.0, 2.0]).
    """

    def wrong():
        image = torch.tensor([0, 255], dtype=torch.uint8)
        return image.requires_grad_()

    def right():
        image = torch.tensor([0, 255], dtype=torch.uint8)
        return image.float().requires_grad_()


@pitfall(wrong=TypeError, right=([[0.25]], True), errors=("(torch.nn.Parameter or None",))
class WeightReplaced:
    """A weight is replaced by a tensor: layer.weight = ....

    A module's weight must be a Parameter, a leaf that the optimizer already holds. The optimizer would not have the new
    tensor.

    Change the values where they are: with torch.no_grad(): layer.weight.mul_(0.5).
    """

    def wrong():
        generator, _, _, _ = one_weight_gan()
        generator.weight = generator.weight * 0.5
        return generator.weight, generator.weight.is_leaf

    def right():
        generator, _, _, _ = one_weight_gan()
        with torch.no_grad():
            generator.weight.mul_(0.5)
        return generator.weight, generator.weight.is_leaf


@pitfall(
    wrong=RuntimeError,
    right=([3.0, 3.0], 1),
    errors=(
        "cannot register a hook on a tensor that doesn't require gradient",
        "cannot register a hook on a variable that doesn't require gradient",
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
)
class HookOnConstant:
    """A hook on a tensor that gets no gradient.

    A tensor's hook runs when its gradient is computed. For a tensor without one, such as real images, it would never
    run. register_post_accumulate_grad_hook() needs a leaf, because only a leaf accumulates.

    Hook a weight or a result, or call requires_grad_() on the images first.
    """

    def wrong():
        real, seen = torch.tensor([1.0, 3.0]), []
        real.register_hook(seen.append)
        return real, len(seen)

    def right():
        real, seen = torch.tensor([1.0, 3.0]).requires_grad_(), []
        real.register_hook(seen.append)
        (3 * real).sum().backward()
        return real.grad, len(seen)


@pitfall(
    wrong=RuntimeError,
    right=[0.5, 0.5],
    errors=("attempting to assign a gradient", "assigned grad expected to be a Tensor or None"),
)
class GradAssigned:
    """.grad is assigned with another shape, dtype or device.

    A gradient has the shape and device of its tensor, and the same dtype unless grad_dtype is set.

    Assign torch.zeros_like(weight), or something computed from the weight; None clears it.
    """

    def wrong():
        weight = torch.tensor([1.0, 3.0], requires_grad=True)
        weight.grad = torch.tensor(0.5)
        return weight.grad

    def right():
        weight = torch.tensor([1.0, 3.0], requires_grad=True)
        weight.grad = torch.full_like(weight, 0.5)
        return weight.grad


@pitfall(wrong=RuntimeError, right=[1.0, 3.0], errors=("Cowardly refusing to serialize non-leaf tensor",))
class SendResult:
    """A result is sent to another process.

    A worker or queue of torch.multiprocessing sends tensors, but no graphs. A data set that makes images with a network
    returns results.

    Send tensor.detach(); compute under no_grad() in workers.
    """

    def wrong():
        fake = torch.tensor([1.0, 3.0], requires_grad=True) * 1
        ForkingPickler.dumps(fake)  # as queue.put(fake) does
        return fake

    def right():
        fake = torch.tensor([1.0, 3.0], requires_grad=True) * 1
        ForkingPickler.dumps(fake.detach())
        return fake
