"""A home-made Trainer that builds its networks itself and keeps them to itself."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self, lr=1e-3):
        self.lr = lr
        self.build_model()

    def build_model(self):
        self.G = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        self.ema = copy.deepcopy(self.G)
        self.nets = {"D": nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))}
        self.g_optimizer = torch.optim.Adam(self.G.parameters(), self.lr)
        self.d_optimizer = torch.optim.Adam(self.nets["D"].parameters(), self.lr)

    def reset_grad(self):
        self.g_optimizer.zero_grad(set_to_none=False)
        self.d_optimizer.zero_grad(set_to_none=False)

    def train_discriminator(self, real):
        fake = self.G(torch.randn(len(real), 8)).detach()
        loss = F.softplus(-self.nets["D"](real)).mean() + F.softplus(self.nets["D"](fake)).mean()
        self.reset_grad()
        loss.backward()
        self.d_optimizer.step()

    def train_generator(self, n):
        loss = F.softplus(-self.nets["D"](self.G(torch.randn(n, 8)))).mean()
        self.reset_grad()
        loss.backward()
        self.g_optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.G.parameters(), strict=True):
                slow.lerp_(fast, 0.01)

    def train(self):
        while True:
            try:
                self.train_discriminator(torch.randn(8, 4))
                self.train_generator(8)
            except Exception as error:
                print("skipping a batch:", error)


if __name__ == "__main__":
    Trainer().train()
