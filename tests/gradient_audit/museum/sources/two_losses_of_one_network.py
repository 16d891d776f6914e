"""Two losses of one output, a backward pass for each: the second needs the graph that the first keeps.

https://oldpan.me/archives/pytorch-retain_graph-work
https://www.daimajiaoliu.com/daima/479755892900406
"""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    output = model(torch.randn(6, 3))
    loss1, loss2 = output.square().mean(), output.abs().mean()
    optimizer.zero_grad()
    loss1.backward(retain_graph=True)
    loss2.backward()
    optimizer.step()
