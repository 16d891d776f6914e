"""The second optimizer holds both models: it runs, as the gradient of a single layer does not need its own weights.

https://oldpan.me/archives/pytorch-retain_graph-work
https://www.daimajiaoliu.com/daima/479755892900406
"""
# printed: second_model_frees_graph_of_first.txt
# The write-up gives this optimizer, and says that retain_graph is safe with it.
# differs: "Adam(model2.parameters()" -> "Adam(itertools.chain(model1.parameters(),model2.parameters())"
# differs: "l2.backward()" -> "l2.backward(retain_graph=True)"
# expects: question shared at "optimizer2.step()"

import itertools

import torch

data = torch.randn(4, 10)
model1 = torch.nn.Linear(10, 2)
model2 = torch.nn.Linear(2, 2)
optimizer1 = torch.optim.Adam(model1.parameters(), lr=0.001, betas=(0.5, 0.999))
optimizer2 = torch.optim.Adam(itertools.chain(model1.parameters(), model2.parameters()), lr=0.001, betas=(0.5, 0.999))
loss = torch.nn.CrossEntropyLoss()
data = torch.randn(4, 10)
label = torch.Tensor([0, 1, 1, 0]).long()

for i in range(20):  # noqa: B007
    a = model1(data)
    b = model2(a)
    l1 = loss(a, label)
    l2 = loss(b, label)
    optimizer2.zero_grad()
    l2.backward(retain_graph=True)
    optimizer2.step()
    optimizer1.zero_grad()
    l1.backward()
    optimizer1.step()
