"""numpy() on a tensor that requires grad."""

import torch

MESSAGES = ("Can't call numpy() on", "device type tensor to numpy")
WHY = "An array shares the tensor's memory, which must be the CPU's; and autograd cannot follow what NumPy does to it."
CURE = "tensor.detach().cpu().numpy(), and .copy() where the array is to be changed. For one number, .item()."
RIGHT_RETURNS = [0.5, 0.7]


def wrong():
    weight = torch.tensor([0.5, 0.7], requires_grad=True)
    return weight.numpy()


def right():
    weight = torch.tensor([0.5, 0.7], requires_grad=True)
    return weight.detach().cpu().numpy()
