"""A network of complex weights, whose output is complex, and one whose output is a spectrum."""
# expects: nothing

import torch
from torch import nn
from torch.optim import Adam


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, signals):
        return torch.fft.rfft(self.layer(signals))


first = nn.Sequential(nn.Linear(4, 8, dtype=torch.cfloat), nn.Linear(8, 8, dtype=torch.cfloat))
second = Spectrum()
optimizer = Adam([*first.parameters(), *second.parameters()])
for _ in range(5):
    signals = first(torch.randn(5, 4, dtype=torch.cfloat))
    loss = (signals.abs() - 1).square().mean() + second(torch.randn(5, 8)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
