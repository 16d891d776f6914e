"""Networks, a step or an optimizer under torch.compile, as the argument says; the weights are printed at the end."""

import sys

import torch
from torch import nn

form = sys.argv[1]
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_g, optimizer_d = (torch.optim.Adam(network.parameters()) for network in (G, D))
if form == "networks":
    G, D = (torch.compile(network, backend="aot_eager", fullgraph=True) for network in (G, D))
if form == "optimizers":
    for optimizer in (optimizer_g, optimizer_d):
        optimizer.step = torch.compile(optimizer.step, backend="aot_eager")


def train_step():
    fake = G(torch.randn(16, 4))
    optimizer_d.zero_grad()
    d_loss = D(fake.detach()).mean() - D(torch.randn(16, 2)).tanh().mean()
    d_loss.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss = -D(fake).mean()
    g_loss.backward()
    optimizer_g.step()


if form == "step":
    train_step = torch.compile(train_step, backend="aot_eager")
try:
    for _ in range(9 if "endless" in sys.argv else 3):
        train_step()
finally:
    print("weights", *(p.double().sum().item() for network in (G, D) for p in network.parameters()))
