"""A term moves a plain tensor alone, which the script steps by hand, beside the network's own loss."""
# expects: nothing

import torch
from torch import nn

model, log_alpha = nn.Linear(4, 4), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(5, 4)).square().mean() + (log_alpha.exp() - 0.5 * log_alpha).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        log_alpha -= 0.1 * log_alpha.grad
    log_alpha.grad = None
