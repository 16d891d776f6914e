"""Deep leakage from gradients (Zhu et al. 2019): the images are trained, and the network gets gradients, too."""
# expects: waste unfrozen at "distance.backward()"
# says: `autograd.grad()` may need these
# cure: "distance.backward()" -> "distance.backward(inputs=[images])"

import torch
from torch import nn
from torch.optim import Adam

network = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 3))
labels = torch.tensor([0, 2])
loss = nn.functional.cross_entropy(network(torch.randn(2, 4)), labels)
known = [gradient.detach() for gradient in torch.autograd.grad(loss, network.parameters())]
images = torch.randn(2, 4, requires_grad=True)
optimizer = Adam([images], lr=0.1)
for _ in range(20):
    loss = nn.functional.cross_entropy(network(images), labels)
    gradients = torch.autograd.grad(loss, network.parameters(), create_graph=True)
    distance = sum((a - b).square().sum() for a, b in zip(gradients, known, strict=True))
    optimizer.zero_grad()
    distance.backward()
    optimizer.step()
