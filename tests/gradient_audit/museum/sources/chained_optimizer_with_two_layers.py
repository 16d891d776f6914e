"""The second optimizer holds both models, and the first one has two layers: its step changes what its loss needs.

https://oldpan.me/archives/pytorch-retain_graph-work
https://www.daimajiaoliu.com/daima/479755892900406
"""
# expects: error overwritten at "optimizer2.step()"
# expects: mistake step-between-backwards at "l1.backward()"
# cure: "    optimizer2.step()" -> "    optimizer2.step()\n    l1 = loss(model1(data), label)"

import itertools

import torch
from torch import nn

model1, model2 = nn.Sequential(nn.Linear(10, 3), nn.Linear(3, 2)), nn.Linear(2, 2)
optimizer1 = torch.optim.Adam(model1.parameters(), lr=0.001, betas=(0.5, 0.999))
optimizer2 = torch.optim.Adam(itertools.chain(model1.parameters(), model2.parameters()), lr=0.001, betas=(0.5, 0.999))
loss = nn.CrossEntropyLoss()
data, label = torch.randn(4, 10), torch.tensor([0, 1, 1, 0])

for _ in range(5):
    a = model1(data)
    b = model2(a)
    l1, l2 = loss(a, label), loss(b, label)
    optimizer2.zero_grad()
    l2.backward(retain_graph=True)
    optimizer2.step()
    optimizer1.zero_grad()
    l1.backward()
    optimizer1.step()
