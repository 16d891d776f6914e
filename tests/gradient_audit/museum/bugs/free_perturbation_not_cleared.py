"""Free adversarial training: the perturbation steps by hand, and its gradient adds up over all steps."""
# expects: question stale at "loss.backward()"
# cure: "    optimizer.step()" -> "    delta.grad = None\n        optimizer.step()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
delta = torch.zeros(5, 4, requires_grad=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(3):
    images, labels = torch.randn(5, 4), torch.randint(3, (5,))
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(images + delta), labels)
        optimizer.zero_grad()
        loss.backward()
        delta.data = (delta.data + 0.1 * delta.grad.sign()).clamp(-0.3, 0.3)
        optimizer.step()
