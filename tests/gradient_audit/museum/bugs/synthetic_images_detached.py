"""Dataset condensation that matches the gradient of detached images: their optimizer steps, and they never move."""
# expects: error unreached at "loss_syn = criterion(net(ima"
# networks: net, image_syn
# cure: "image_syn.detach()" -> "image_syn"
# trains: image_syn

import torch
from torch import nn

net, criterion = nn.Linear(4, 3), nn.CrossEntropyLoss()
image_syn, label_syn = torch.randn(3, 4, requires_grad=True), torch.arange(3)
optimizer_net = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer_img = torch.optim.SGD([image_syn], lr=0.1, momentum=0.5)

for _ in range(5):
    weights = list(net.parameters())
    optimizer_net.zero_grad()
    optimizer_img.zero_grad()
    loss_real = criterion(net(torch.randn(6, 4)), torch.randint(3, (6,)))
    gw_real = torch.autograd.grad(loss_real, weights)
    loss_syn = criterion(net(image_syn.detach()), label_syn)
    gw_syn = torch.autograd.grad(loss_syn, weights, create_graph=True)
    loss = loss_syn + sum((real - syn).square().sum() for real, syn in zip(gw_real, gw_syn, strict=True))
    loss.backward()
    optimizer_img.step()
    optimizer_net.step()
