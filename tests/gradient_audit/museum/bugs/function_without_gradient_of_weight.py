"""The backward() of a Function returns None for the weight, so that only the other layers are trained."""
# expects: error unreached at "optimizer.step()"
# cure: "[1], None" -> "[1], slope.T @ ctx.saved_tensors[0]"

import torch
from torch import nn


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, slope):
        return slope @ ctx.saved_tensors[1], None


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x):
        return Product.apply(x, self.weight)


model = nn.Sequential(Layer(), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    (model(torch.randn(3, 4)) - 1).square().mean().backward()
    optimizer.step()
