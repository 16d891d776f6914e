"""Gradients are clipped while still scaled."""

import torch

WHY = "A GradScaler multiplies the loss, here by 128. Clipped while still scaled, the step is 128 times too small."
CURE = "scaler.unscale_(optimizer) before clip_grad_norm_()."
WRONG_RETURNS = 2.992
RIGHT_RETURNS = 2.0


def wrong():
    weight = torch.tensor(3.0, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cpu", init_scale=128.0)
    scaler.scale(2 * weight).backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    return weight


def right():
    weight = torch.tensor(3.0, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cpu", init_scale=128.0)
    scaler.scale(2 * weight).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    return weight
