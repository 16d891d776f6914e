"""Inside a network, the features are detached before the head: the layers before them never get a gradient."""
# expects: error unreached at "return self.head(features.de"
# mistake: detached-fakes
# cure: "features.detach()" -> "features"
# trains: model

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        features = self.body(x).relu()
        return self.head(features.detach())


model = Network()
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
