"""The running average of the loss, for the progress bar, lacks detach(): it holds the graphs of all steps."""
# expects: waste kept at "average = 0.9"
# cure: "0.1 * loss" -> "0.1 * loss.detach()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())

average = torch.zeros(())
for _ in range(8):
    loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.9 * average + 0.1 * loss
    print("loss", average.item())
