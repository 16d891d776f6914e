"""A hook takes features of a ready-made network, whose own head is computed and dropped: BYOL's way to a projection."""
# expects: nothing

import torch
from torch import nn

network = nn.Sequential(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Flatten(), nn.Linear(8, 10))


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.projection, self.hidden = network, nn.Linear(8, 4), {}
        network[1].register_forward_hook(lambda module, inputs, output: self.hidden.update(features=output))

    def features(self, x):
        self.network(x)
        return self.hidden.pop("features")

    def forward(self, x):
        first, second = (self.projection(self.features(x + torch.randn_like(x))) for _ in range(2))
        return 2 - 2 * nn.functional.cosine_similarity(first, second.detach()).mean()


learner = Learner()
optimizer = torch.optim.Adam(learner.parameters())

for _ in range(20):
    loss = learner(torch.randn(6, 8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
