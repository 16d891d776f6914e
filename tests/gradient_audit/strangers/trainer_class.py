"""A home-made Trainer that builds its networks itself, keeps them to itself, and goes on after an exception."""

import copy

import torch
from torch import nn
from torch.nn.functional import softplus


class Trainer:
    def __init__(self):
        self.G = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        self.ema = copy.deepcopy(self.G)
        self.nets = {"D": nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))}
        self.optimizers = [torch.optim.Adam(net.parameters()) for net in (self.G, self.nets["D"])]

    def update(self, number, loss):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=False)
        loss.backward()
        self.optimizers[number].step()

    def train(self):
        while True:
            try:
                fake = self.G(torch.randn(8, 8)).detach()
                self.update(1, (softplus(-self.nets["D"](torch.randn(8, 4))) + softplus(self.nets["D"](fake))).mean())
                self.update(0, softplus(-self.nets["D"](self.G(torch.randn(8, 8)))).mean())
                with torch.no_grad():
                    for slow, fast in zip(self.ema.parameters(), self.G.parameters(), strict=True):
                        slow.lerp_(fast, 0.01)
            except Exception as error:
                print("skipping a batch:", error)


Trainer().train()
