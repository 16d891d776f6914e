"""An adversarial autoencoder whose third optimizer, made by the helper that makes all, got the decoder."""
# expects: error unreached at "optimizers[2].step()"
# expects: waste wasted at "generator_loss.backward()"
# cure: "(encoder, decoder, decoder, critic)" -> "(encoder, decoder, encoder, critic)"
# cure: "generator_loss.backward()" -> "generator_loss.backward(inputs=[*encoder.parameters()])"

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.optim import Adam


def adam(network):
    return Adam(network.parameters(), lr=1e-3, betas=(0.5, 0.999))


encoder, decoder, critic = nn.Linear(8, 2), nn.Linear(2, 8), nn.Linear(2, 1)
optimizers = [adam(network) for network in (encoder, decoder, decoder, critic)]
for _ in range(20):
    batch = torch.randn(5, 8)
    optimizers[0].zero_grad()
    optimizers[1].zero_grad()
    nn.functional.mse_loss(decoder(encoder(batch)), batch).backward()
    optimizers[0].step()
    optimizers[1].step()
    optimizers[3].zero_grad()
    with torch.no_grad():
        codes = encoder(batch)
    (softplus(critic(codes)).mean() + softplus(-critic(torch.randn(5, 2))).mean()).backward()
    optimizers[3].step()
    optimizers[2].zero_grad()
    generator_loss = softplus(-critic(encoder(batch))).mean()
    generator_loss.backward()
    optimizers[2].step()
