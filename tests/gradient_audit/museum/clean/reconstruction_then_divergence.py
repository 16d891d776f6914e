"""A VAE's two losses, a backward pass for each, and an optimizer each for encoder and decoder."""
# expects: nothing

import torch
from torch import nn

encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
optimizers = [torch.optim.Adam(encoder.parameters()), torch.optim.Adam(decoder.parameters())]

for _ in range(5):
    x = torch.rand(8, 6)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    made = decoder(mean + torch.randn_like(mean) * (log_variance / 2).exp())
    for optimizer in optimizers:
        optimizer.zero_grad()
    nn.functional.mse_loss(made, x).backward(retain_graph=True)
    (log_variance.exp() + mean.square() - 1 - log_variance).sum(1).mean().backward()
    for optimizer in optimizers:
        optimizer.step()
