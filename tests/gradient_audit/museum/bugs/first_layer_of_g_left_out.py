"""G's optimizer was given the synthesis alone: the mapping from noise keeps its first weights."""
# expects: error ownerless at "generator = Generator()"
# cure: "generator.synthesis.parameters()" -> "generator.parameters()"
# trains: generator

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.mapping = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.synthesis = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, z):
        return self.synthesis(self.mapping(z))


generator = Generator()
discriminator = nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.synthesis.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
