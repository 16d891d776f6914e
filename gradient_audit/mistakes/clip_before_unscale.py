"""Gradients are clipped while still scaled."""

import torch

WHY = """A GradScaler multiplies the loss, here by 128, and step() divides the gradients again. Clipping in
between compares the scaled norm with the limit: the step becomes 128 times too small."""
CURE = "scaler.unscale_(optimizer) before clip_grad_norm_()."
WRONG_RETURNS = [0.99453, 0.99453]
RIGHT_RETURNS = [0.29289, 0.29289]


def wrong():
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    scaler.scale(2 * weight.sum()).backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    return weight


def right():
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    scaler.scale(2 * weight.sum()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    return weight
