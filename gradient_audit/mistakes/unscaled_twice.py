"""scaler.unscale_() twice before scaler.update()."""

import torch

MESSAGES = ("unscale_() has already been called", "unscale_() is being called after step()")
WHY = """The scaler notes of each optimizer that its gradients are unscaled, or that it has stepped, until update():
without update(), or where gradients are accumulated and unscaled in each pass, the next call is one too many."""
CURE = "unscale_() once, after the last backward() of a step; then step(), and update(), also after a skipped step."


def wrong(times=2):
    weight = torch.tensor(3.0, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cpu", init_scale=4.0)
    for _ in range(times):
        scaler.scale(2 * weight).backward()
        scaler.unscale_(optimizer)
    scaler.step(optimizer)


def right():
    wrong(times=1)
