"""Domain adversarial training: one loss and one optimizer; the domain's gradient changes its sign on its way back."""
# expects: nothing

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -0.1 * gradient


features, labeller, domain = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 2)
parameters = [*features.parameters(), *labeller.parameters(), *domain.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01)

for _ in range(5):
    source, target, labels = torch.randn(4, 4), torch.randn(4, 4), torch.randint(3, (4,))
    both = features(torch.cat((source, target)))
    label_loss = nn.functional.cross_entropy(labeller(both[:4]), labels)
    domains = torch.cat((torch.zeros(4), torch.ones(4))).long()
    domain_loss = nn.functional.cross_entropy(domain(Reverse.apply(both)), domains)
    optimizer.zero_grad()
    (label_loss + domain_loss).backward()
    optimizer.step()
