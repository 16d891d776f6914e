"""A graph that is gone, or whose saved values have changed."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
from torch import nn

from common.pitfalls.engine import one_weight_gan, pitfall

SECOND_TIME = ("backward through the graph a second time",)


@pitfall(wrong=RuntimeError, right=[[-0.91]], errors=SECOND_TIME)
class SecondBackward:
    """Two losses over one shared graph, backward() twice.

    backward() frees the graph it went through, to save memory. Both losses here depend on G, so the first backward()
    frees the graph that the second needs.

    Use fake.detach() in the loss that is not for G. If both losses are for the same weights, add them and call
    backward() once. retain_graph=True also silences the error, but computes a gradient of D's loss for G, which must
    then be cleared.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake) ** 2
        g_loss = (discriminator(fake) - 1) ** 2
        d_loss.backward()  # goes through G, too, and frees G's graph
        g_loss.backward()  # needs G's graph
        return generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2  # this loss ends at the fakes
        g_loss = (discriminator(fake) - 1) ** 2
        d_loss.backward()
        g_loss.backward()
        return generator.weight.grad


@pitfall(wrong=RuntimeError, right=2.0, errors=SECOND_TIME, hints=("running", "hidden", "total_loss"))
class LossKeptWithGraph:
    """A running loss keeps the graph of the last step.

    The second step adds to a tensor that still refers to the graph of the first, which backward() has freed. An image
    pool of past fakes, or the hidden state of an LSTM, does the same.

    detach() whatever is kept from one step to the next. For a number to print, .item() or .detach().
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        total = torch.zeros(())
        for _ in range(2):
            total = total + weight**2
            total.backward()  # the second time also through the first step
        return weight.grad

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        total = torch.zeros(())
        for _ in range(2):
            weight.grad = None
            loss = weight**2
            loss.backward()
            total = total + loss.detach()
        return weight.grad


@pitfall(wrong=RuntimeError, right=57.0, errors=SECOND_TIME, hints=("create_graph=True", "penalty"))
class PenaltyFreesGraph:
    """A gradient penalty frees the graph that D's loss needs.

    create_graph=True keeps the graph, because retain_graph follows it. retain_graph=False beside it frees the graph at
    once, and backward() of neither the penalty nor D's loss can use it.

    torch.autograd.grad(..., create_graph=True), and no retain_graph.
    """

    def wrong():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(1.0, requires_grad=True)
        d = (weight * x) ** 3
        (slope,) = torch.autograd.grad(d, x, create_graph=True, retain_graph=False)
        (d + slope**2).backward()
        return weight.grad

    def right():
        x = torch.tensor(1.0, requires_grad=True)
        weight = torch.tensor(1.0, requires_grad=True)
        d = (weight * x) ** 3
        (slope,) = torch.autograd.grad(d, x, create_graph=True)
        (d + slope**2).backward()  # slope = 3 weight^3 x^2
        return weight.grad


FIRST_EDIT = "expected version 0 instead"
FIRST_STEP = "Tensor [#]] is at version 2; expected version 1"  # the weight of a normalization
MODIFIED_IN_PLACE = ("variables needed for gradient computation", "modified by an inplace operation")


@pitfall(wrong=RuntimeError, right=[[-0.5775]], errors=MODIFIED_IN_PLACE, hints=(FIRST_STEP,))
class StepBetweenBackwards:
    """D steps between two backward() of one forward pass.

    G's gradient depends on D's weights as they were in the forward pass; step() has overwritten them in place. The
    tensor that the message names is a weight of D: compare its shape with your layers. It also names the operation that
    made the tensor, AsStridedBackward0 in PyTorch 2.6 and AsStrided in 2.13 and later. Before PyTorch 1.5 this gave no
    error and a gradient mixed from old and new weights.

    After D's step, run D again on the same fakes. Or call backward() of both losses before either optimizer steps, each
    with inputs=list(network.parameters()) of its own network. inplace=False on activations does not help here.
    """

    def wrong():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        score = discriminator(generator(torch.ones(1, 1)))
        d_loss, g_loss = score**2, (score - 1) ** 2
        d_loss.backward(retain_graph=True)
        optimizer_d.step()  # changes the weights that `score` came from
        optimizer_g.zero_grad()
        g_loss.backward()
        return generator.weight.grad

    def right():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        d_loss.backward()
        optimizer_d.step()
        g_loss = (discriminator(fake) - 1) ** 2  # D as it is now
        optimizer_g.zero_grad()
        g_loss.backward()
        return generator.weight.grad


@pitfall(wrong=RuntimeError, right=([3.0, 5.0], 0), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT, "CopySlices"))
class EditAfterUse:
    """A tensor is edited in place after a loss has used it.

    The gradient of b * b needs the value of b. Every tensor counts its in-place edits in _version: 0 when b * b saved
    it, 1 after the assignment, and the message says so.

    Edit a clone(), or edit after backward().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).mean()
        b[0] = 1000.0  # the gradient of b * b needs b as it was
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).mean()
        edited = b.clone()
        edited[0] = 1000.0
        loss.backward()
        return a.grad, b._version


@pitfall(
    wrong=RuntimeError,
    right=[0.25, 0.19661],
    errors=MODIFIED_IN_PLACE,
    hints=(FIRST_EDIT, "inplace=True", *(f"output 0 of {name}" for name in ("Sigmoid", "Tanh", "Softmax", "Exp"))),
)
class InplaceActivation:
    """An in-place activation right after sigmoid or tanh.

    Sigmoid computes its gradient from its output, s (1 - s), and so saves the output. The activation after it writes
    into that tensor. The message names the layer whose output was lost.

    inplace=False there. After a layer that does not need its output (Linear, Conv2d, BatchNorm), an in-place activation
    is safe.
    """

    def wrong():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2, inplace=True))(x)
        y.sum().backward()
        return x.grad

    def right():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2))(x)
        y.sum().backward()
        return x.grad


@pitfall(wrong=RuntimeError, right=([1.0, 1.0], 0), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT, "output 0 of Relu"))
class EditAfterRelu:
    """x += skip, right after ReLU.

    x += skip writes into x; x = x + skip makes a new tensor. ReLU, like Sigmoid and Tanh, computes its gradient from
    its output, which the first form destroys.

    Write x = x + skip.
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = torch.relu(a)
        b += a  # ReLU keeps its output, to see where it was positive
        b.mean().backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = torch.relu(a)
        b = b + a
        b.mean().backward()
        return a.grad, b._version


@pitfall(wrong=RuntimeError, right=[6.0, 10.0], errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT,))
class EditThroughDetach:
    """A detached tensor is edited, and with it the original.

    detach() makes no copy: it shares the memory and the _version counter of the original. So autograd catches the edit.
    Through .data it would not: see data-edit.

    detach().clone() before an in-place edit, such as mul_(0.5).add_(0.5) on images to be saved.
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().zero_()  # the same memory as b
        loss.backward()
        return a.grad

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().clone().zero_()
        loss.backward()
        return a.grad


@pitfall(wrong=RuntimeError, right=([0.5, 0.5], 1), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT,))
class HarmlessEdit:
    """The same edit, an error here and harmless there.

    Autograd compares _version only when a backward pass needs a saved value. Both edits raise _version to 1; the second
    b is not needed.

    Do not rely on it: a change of the loss, or of the layer before, brings the error. Edit a clone().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a.exp()  # the gradient of exp is exp: b is needed
        loss = b.mean()
        b[0] = 1000.0
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2  # neither this nor mean() needs b for its gradient
        loss = b.mean()
        b[0] = 1000.0
        loss.backward()
        return a.grad, b._version
