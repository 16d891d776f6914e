"""One of several views is edited: for image in fakes."""

import torch

MESSAGES = (
    "is a view and is being modified inplace",
    "output of a function that returns multiple views",
    "its base or another view of its base has been modified inplace",
    "A view was created in no_grad mode",
    "A view was created in inference mode",
    "This view was created inside a custom Function",
)
WHY = """unbind(), split(), chunk() and a loop over a tensor give several views of it at once. Autograd does not
track edits to one of them, nor to their base while they are in use."""
CURE = "Make a new tensor: image = image * 2. Or edit a view of its own: fakes[0].mul_(2)."
RIGHT_RETURNS = [4.0, 2.0]


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
