"""A deep equilibrium model: the implicit gradient comes from autograd.grad() in a hook of the backward pass."""
# expects: nothing

import torch
from torch import nn

layer, out = nn.Linear(4, 4), nn.Linear(4, 2)
optimizer = torch.optim.SGD([*layer.parameters(), *out.parameters()], 0.1)
for _ in range(4):
    x = torch.randn(3, 4)
    with torch.no_grad():
        z = torch.tanh(layer(torch.zeros(3, 4)) + x)
    z.requires_grad_()
    y = torch.tanh(0.1 * layer(z) + x)

    def implicit(grad):
        handle.remove()
        return torch.autograd.grad(y, z, grad, retain_graph=True)[0] + grad

    handle = y.register_hook(implicit)
    optimizer.zero_grad()
    out(y).pow(2).mean().backward()
    optimizer.step()
