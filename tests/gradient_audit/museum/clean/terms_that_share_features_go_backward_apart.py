"""Two losses that share what comes before them, and no term, go backward one after the other."""
# expects: nothing

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
encoder, decoder = nn.Linear(16, 8), nn.Linear(4, 16)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)
for _ in range(5):
    x = torch.rand(8, 16)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
    reconstruction = mse_loss(decoder(z), x)
    divergence = -0.5 * torch.mean(1 + log_variance - mean.pow(2) - log_variance.exp())
    optimizer.zero_grad()
    divergence.backward(retain_graph=True)
    reconstruction.backward()
    optimizer.step()
