"""The penalty of invariant risk minimisation (Arjovsky et al. 2019) without `create_graph=True` is a constant."""
# expects: error dead at "(gradient,) = torch.autograd.grad(risk, scale, retain_graph=True)"
# cure: "retain_graph=True" -> "create_graph=True"
# mistake: penalty-without-graph

import torch
from torch import nn
from torch.optim import Adam

classifier = nn.Linear(4, 3)
optimizer = Adam(classifier.parameters())
for _ in range(5):
    scale = torch.tensor(1.0, requires_grad=True)
    logits = classifier(torch.randn(8, 4)) * scale
    risk = nn.functional.cross_entropy(logits, torch.randint(3, (8,)))
    (gradient,) = torch.autograd.grad(risk, scale, retain_graph=True)
    optimizer.zero_grad()
    (risk + 10 * gradient.square()).backward()
    optimizer.step()
