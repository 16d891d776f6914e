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

    def reset_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=False)

    def train_discriminator(self):
        fake = self.G(torch.randn(8, 8)).detach()
        loss = softplus(-self.nets["D"](torch.randn(8, 4))).mean() + softplus(self.nets["D"](fake)).mean()
        self.reset_grad()
        loss.backward()
        self.optimizers[1].step()

    def train_generator(self):
        loss = softplus(-self.nets["D"](self.G(torch.randn(8, 8)))).mean()
        self.reset_grad()
        loss.backward()
        self.optimizers[0].step()
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.G.parameters(), strict=True):
                slow.lerp_(fast, 0.01)

    def train(self):
        while True:
            try:
                self.train_discriminator()
                self.train_generator()
            except Exception as error:
                print("skipping a batch:", error)


Trainer().train()
