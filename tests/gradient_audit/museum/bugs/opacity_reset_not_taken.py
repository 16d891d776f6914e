"""Splatting resets the opacities: the optimizer gets the new parameter, and the loss goes on with the old one.

No public report of it was found.
"""
# expects: error ownerless at "loss.backward()"
# cure: "        optimizer.param_groups[0]" -> "        opacity = reset\n        optimizer.param_groups[0]"
# trains: opacity, xyz

import torch
from torch import nn

opacity, xyz = nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))
optimizer = torch.optim.Adam([{"params": [opacity]}, {"params": [xyz]}], 1e-2)
for step in range(1, 9):
    loss = (opacity.sigmoid() * xyz - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step == 2:
        reset = nn.Parameter(opacity.detach().clamp(max=-2.0))
        optimizer.state[reset] = optimizer.state.pop(opacity)
        optimizer.param_groups[0]["params"][0] = reset
