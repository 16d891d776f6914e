"""A loss uses what was computed under inference_mode()."""

import torch

MESSAGES = ("Inference tensors cannot be saved for backward", "Inplace update to inference tensor")
WHY = "A tensor made under torch.inference_mode() has no version counter, so autograd can neither save nor edit it."
CURE = "Compute it under torch.no_grad(), as fakes for D; or clone() it outside of inference_mode()."
RIGHT_RETURNS = 6.0


def wrong():
    weight = torch.tensor(3.0, requires_grad=True)
    with torch.inference_mode():
        fake = torch.tensor(2.0) * 3
    (weight * fake).backward()
    return weight.grad


def right():
    weight = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        fake = torch.tensor(2.0) * 3
    (weight * fake).backward()
    return weight.grad
