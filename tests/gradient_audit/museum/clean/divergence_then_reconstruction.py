"""A VAE in one model, its halves under an optimizer each: a backward pass for the divergence, then one for the rest."""
# expects: nothing

import torch
from torch import nn

model = nn.ModuleDict({"encoder": nn.Linear(6, 4), "decoder": nn.Linear(2, 6)})
encoder, decoder = model.values()
optimizers = [torch.optim.Adam(encoder.parameters()), torch.optim.Adam(decoder.parameters())]

for _ in range(5):
    x = torch.rand(8, 6)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    made = decoder(mean + torch.randn_like(mean) * (log_variance / 2).exp())
    for optimizer in optimizers:
        optimizer.zero_grad()
    (log_variance.exp() + mean.square() - 1 - log_variance).sum(1).mean().backward(retain_graph=True)
    nn.functional.mse_loss(made, x).backward()
    for optimizer in optimizers:
        optimizer.step()
