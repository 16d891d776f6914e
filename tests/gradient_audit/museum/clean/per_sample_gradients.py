"""Gradients of single samples by torch.func, clipped and averaged, as in differential privacy; then one step."""
# expects: nothing

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(weights, sample, label):
    return (functional_call(model, weights, (sample,)) - label).square().mean()


for _ in range(5):
    weights = {name: p.detach() for name, p in model.named_parameters()}
    gradients = vmap(grad(loss_of), in_dims=(None, 0, 0))(weights, torch.randn(9, 3), torch.randn(9, 1))
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
    for name, p in model.named_parameters():
        scaled = gradients[name].flatten(1) / norms.clamp(min=1)[:, None]
        p.grad = scaled.mean(0).view_as(p)
    optimizer.step()
