"""An average and a loss hold a network, whose name is its own; a model holds parameters beside its parts."""
# expects: nothing
# networks: G, D, model.first, model (itself)

import copy

import torch
from torch import nn


class Ema(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.online_model, self.ema_model = model, copy.deepcopy(model).requires_grad_(False)


class Loss(nn.Module):
    def __init__(self, critic):
        super().__init__()
        self.critic = critic

    def forward(self, x):
        return self.critic(x).mean()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.first, self.second = nn.Parameter(torch.ones(())), nn.Linear(4, 8), D

    def forward(self, x):
        return self.second(self.first(x) * self.scale)


ema, loss_func = Ema(nn.Linear(4, 8)), Loss(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1)))
G, D = ema.online_model, loss_func.critic
model = Model()
parts = [ema.online_model], [model.first, loss_func.critic], [model.scale]
optimizers = [
    torch.optim.SGD([p for part in one for p in (part.parameters() if isinstance(part, nn.Module) else [part])], 0.01)
    for one in parts
]

for _ in range(5):
    for optimizer in optimizers:
        optimizer.zero_grad()
    (G(torch.ones(2, 4)).mean() + loss_func(torch.ones(2, 8)) + model(torch.ones(2, 4)).mean()).backward()
    for optimizer in optimizers:
        optimizer.step()
