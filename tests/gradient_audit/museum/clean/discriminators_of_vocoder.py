"""A vocoder's four discriminators with feature matching, as in HiFi-GAN: what G's loss leaves in them is one waste."""
# expects: waste wasted at "g_loss.backward()"

import torch
from torch import nn

torch.manual_seed(0)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        features = self.first(x).relu()
        return self.last(features), features


generator, discriminators = nn.Linear(4, 4), nn.ModuleList(Discriminator() for _ in range(4))
optimizer_g, optimizer_d = (torch.optim.AdamW(network.parameters()) for network in (generator, discriminators))

for _ in range(20):
    real, fake = torch.randn(8, 4), generator(torch.randn(8, 4))
    optimizer_d.zero_grad()
    d_loss = sum((d(real)[0] - 1).square().mean() + d(fake.detach())[0].square().mean() for d in discriminators)
    d_loss.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    g_loss = 45 * nn.functional.l1_loss(fake, real)
    for discriminator in discriminators:
        with torch.no_grad():
            wanted = discriminator(real)[1]
        score, features = discriminator(fake)
        g_loss = g_loss + (score - 1).square().mean() + 2 * nn.functional.l1_loss(features, wanted)
    g_loss.backward()
    optimizer_g.step()
