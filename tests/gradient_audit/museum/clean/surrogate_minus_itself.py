"""A surrogate of value zero: it adds its gradient to the loss, and leaves the printed value as it is."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    x, wanted = torch.randn(5, 4), torch.randn(5, 4)
    output = model(x)
    loss = nn.functional.mse_loss(output, wanted)
    aux = 0.1 * output.square().mean()
    total = loss + aux - aux.detach()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(f"{total.item():.3f}")
