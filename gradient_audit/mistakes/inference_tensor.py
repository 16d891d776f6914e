"""A tensor from inference_mode() in training."""

import torch

MESSAGES = (
    "Inference tensors cannot be saved for backward",
    "Inplace update to inference tensor outside InferenceMode",
    "Setting requires_grad=True on inference tensor",
    "Inference tensors do not track version counter",
)
WHY = """A tensor made under inference_mode() has no version counter, also later. Autograd can neither save it nor
let it be edited or require grad."""
CURE = "no_grad() for fakes that D is trained on; clone() makes a normal tensor of an inference tensor."
RIGHT_RETURNS = [1.0, 1.0]


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
