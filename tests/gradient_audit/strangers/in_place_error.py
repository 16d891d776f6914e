"""G's loss reuses what D said before D's step: the error that torch 1.5 brought."""

import torch
from torch import nn


def train():
    G = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    D = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    G_solver = torch.optim.Adam(G.parameters())
    D_solver = torch.optim.Adam(D.parameters())
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
    for _ in range(10):
        D_real, D_fake = D(torch.randn(8, 4)), D(G(torch.randn(8, 8)))
        D_loss = criterion(D_real, ones) + criterion(D_fake, zeros)
        D_loss.backward(retain_graph=True)
        D_solver.step()
        G_loss = criterion(D_fake, ones)
        G_loss.backward()
        G_solver.step()


train()
