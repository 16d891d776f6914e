"""VAE-GAN: each loss is limited to its own network; the term of the real images is for D alone, in the third pass."""
# expects: nothing

import torch
from torch import nn

encoder, decoder, discriminator = nn.Linear(20, 16), nn.Linear(8, 20), nn.Linear(20, 1)
optimizers = [torch.optim.RMSprop(network.parameters(), 3e-4) for network in (encoder, decoder, discriminator)]
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(10):
    x = torch.randn(16, 20)
    mean, log_variance = encoder(x).chunk(2, 1)
    made = decoder(mean + torch.randn_like(mean) * (log_variance / 2).exp())
    prior = (mean.square() + log_variance.exp() - log_variance).mean()
    likeness = nn.functional.mse_loss(made, x)
    real, fake = discriminator(x), discriminator(made)
    gan = bce(real, torch.ones(16, 1)) + bce(fake, torch.zeros(16, 1))
    for optimizer in optimizers:
        optimizer.zero_grad()
    (prior + likeness).backward(retain_graph=True, inputs=list(encoder.parameters()))
    (likeness - 0.1 * gan).backward(retain_graph=True, inputs=list(decoder.parameters()))
    gan.backward(inputs=list(discriminator.parameters()))
    for optimizer in optimizers:
        optimizer.step()
