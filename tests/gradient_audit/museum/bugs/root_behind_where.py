"""where() hides the NaN of a root in the forward pass; in the backward pass, NaN times zero is NaN."""
# expects: error nan at "energy = "
# mistake: nan-gradient
# cure: "output.sqrt()" -> "output.clamp(min=1e-6).sqrt()"

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    output = model(torch.randn(8, 4))
    energy = torch.where(output > 0, output.sqrt(), 0.0)
    loss = energy.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
