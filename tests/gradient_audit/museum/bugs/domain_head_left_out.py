"""Domain adversarial training: the optimizer holds the features and the label's head, and not the domain's."""
# expects: error ownerless at "model = Model()"
# cure: "[*model.features.parameters(), *model.label.parameters()]" -> "model.parameters()"
# trains: model.domain

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -0.1 * gradient


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.label, self.domain = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 2)

    def forward(self, x):
        features = self.features(x).relu()
        return self.label(features), self.domain(Reverse.apply(features))


model = Model()
optimizer = torch.optim.Adam([*model.features.parameters(), *model.label.parameters()])

for _ in range(5):
    labels, domains = model(torch.randn(8, 4))
    label_loss = nn.functional.cross_entropy(labels, torch.randint(3, (8,)))
    domain_loss = nn.functional.cross_entropy(domains, torch.randint(2, (8,)))
    optimizer.zero_grad()
    (label_loss + domain_loss).backward()
    optimizer.step()
