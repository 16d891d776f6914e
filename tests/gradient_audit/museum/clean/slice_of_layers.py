"""StyleGAN2's generator slices its list of layers in forward(): each slice is a module for a moment."""
# expects: nothing
# networks: generator

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        for first, second in zip(self.layers[::2], self.layers[1::2], strict=True):
            x = second(first(x).tanh())
        return x


generator = Generator()
optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = generator(torch.randn(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
