"""In the step of G, D sees fakes that are detached: the adversarial term reaches D alone, and G learns the L1 term.

https://github.com/nikhilsinghmus/image2reverb/issues/37
"""
# expects: error dead at "adversarial = mse(discrimina"
# expects: waste wasted at "g_loss.backward()"
# cure: "adversarial = mse(discriminator(fake.detach())" -> "adversarial = mse(discriminator(fake)"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
g_optim = torch.optim.Adam(generator.parameters(), lr=2e-4)
d_optim = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
mse = nn.functional.mse_loss

for _ in range(5):
    features, spectrogram = torch.randn(3, 4), torch.randn(3, 4)
    fake = generator(features)
    adversarial = mse(discriminator(fake.detach()), torch.ones(3, 1))
    g_loss = adversarial + 100 * (fake - spectrogram).abs().mean()
    g_optim.zero_grad()
    g_loss.backward()
    g_optim.step()

    d_loss = mse(discriminator(fake.detach()), torch.zeros(3, 1)) + mse(discriminator(spectrogram), torch.ones(3, 1))
    d_optim.zero_grad()
    d_loss.backward()
    d_optim.step()
