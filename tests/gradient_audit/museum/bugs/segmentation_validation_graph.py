"""The validation runs with a graph that nobody uses: memory is full after a while.

https://github.com/hszhao/semseg/issues/60
"""
# expects: question unused at "output = model(held_out)"
# cure: "    output = model(held_out)" -> "    with torch.no_grad():\n        output = model(held_out)"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(5):
    images, target = torch.randn(4, 4), torch.randint(3, (4,))
    model.train()
    loss = nn.functional.cross_entropy(model(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    model.eval()
    held_out = torch.randn(4, 4)
    output = model(held_out)
    print("validation", nn.functional.cross_entropy(output, target).item())
