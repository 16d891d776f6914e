"""One loss, and an optimizer each for encoder and decoder: there is nothing else that it could be for."""
# expects: nothing

import torch
from torch import nn

encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=2e-3)

for _ in range(5):
    x = torch.rand(5, 6)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
    reconstruction = nn.functional.binary_cross_entropy_with_logits(decoder(z), x)
    loss = reconstruction + 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).mean()
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
