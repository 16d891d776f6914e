"""In-place edits of views, and of tensors made in inference mode."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch

from common.pitfalls.engine import pitfall


@pitfall(
    wrong=RuntimeError,
    right=[4.0, 2.0],
    errors=(
        "is a view and is being modified inplace",
        "output of a function that returns multiple views",
        "its base or another view of its base has been modified inplace",
    ),
)
class EditOneOfManyViews:
    """One of several views is edited: for image in fakes.

    unbind(), split(), chunk() and a loop over a tensor give several views of it at once. Autograd does not track edits
    to one of them, nor to their base while they are in use.

    Make a new tensor: image = image * 2. Or edit a view of its own: fakes[0].mul_(2).
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        fakes = x * 2
        for image in fakes:
            image.mul_(2)
        return fakes

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        fakes = x * 2
        fakes[0].mul_(2)  # a view made alone
        fakes.sum().backward()
        return x.grad


@pitfall(
    wrong=RuntimeError,
    right=[4.0, 4.0],
    errors=("A view was created in no_grad mode", "A view was created in inference mode"),
)
class EditViewFromNoGrad:
    """A view made under no_grad() is edited outside.

    It is unclear whether the edit must be recorded: the view was made where nothing is recorded.

    Make the view and edit it on the same side: both under no_grad(), or both outside.
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        fakes = x * 2
        with torch.no_grad():
            flat = fakes.view(-1)
        flat.mul_(2)
        return flat

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        fakes = x * 2
        flat = fakes.view(-1)
        flat.mul_(2)
        flat.sum().backward()
        return x.grad


@pitfall(
    wrong=RuntimeError,
    right=[2.0, 2.0, 2.0],
    errors=("more than one element of the written-to tensor refers to a single memory location",),
)
class EditExpanded:
    """An expanded tensor is edited in place.

    expand() and expand_as() repeat a value without a copy: several elements are one place in memory.

    Make a new tensor, or clone() (repeat() copies as well) before the edit.
    """

    def wrong():
        label = torch.ones(1).expand(3)
        label.add_(1)
        return label

    def right():
        label = torch.ones(1).expand(3)
        return label + 1


@pitfall(
    wrong=RuntimeError,
    right=[1.0, 1.0],
    errors=(
        "Inference tensors cannot be saved for backward",
        "Inplace update to inference tensor outside InferenceMode",
        "Setting requires_grad=True on inference tensor",
        "Inference tensors do not track version counter",
    ),
)
class InferenceTensor:
    """A tensor from inference_mode() in training.

    A tensor made under inference_mode() has no version counter, also later. Autograd can neither save it nor let it be
    edited or require grad.

    no_grad() for fakes that D is trained on; clone() makes a normal tensor of an inference tensor.
    """

    def wrong():
        weight = torch.tensor([1.0, 3.0], requires_grad=True)
        with torch.inference_mode():
            fake = torch.ones(2)
        (weight * fake).sum().backward()
        return weight.grad

    def right():
        weight = torch.tensor([1.0, 3.0], requires_grad=True)
        with torch.no_grad():
            fake = torch.ones(2)
        (weight * fake).sum().backward()
        return weight.grad


@pitfall(wrong=RuntimeError, right=[4.0, 8.0], errors=("functions with out=... arguments don't support automatic",))
class OutArgument:
    """out= with a tensor that requires grad.

    An operation that writes into a tensor given by out= is not recorded, and PyTorch refuses it for a tensor that
    requires grad.

    Leave out= away; or use it under no_grad(), if no gradient is needed.
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        total = torch.empty(2)
        torch.add(x, 1, out=total)
        return total

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        total = torch.add(x, 1)
        total.square().sum().backward()
        return x.grad


@pitfall(wrong=RuntimeError, right=[2.0, 2.0], errors=("Can't detach views in-place",))
class DetachViewInPlace:
    """detach_() on a view.

    detach_() removes a tensor from its graph in place. A view cannot be removed without its base.

    detach(), which makes a new tensor.
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        first = (x * 2)[:1]
        first.detach_()
        return first

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        fakes = x * 2
        first = fakes[:1].detach()
        (fakes.sum() + first.sum()).backward()
        return x.grad
