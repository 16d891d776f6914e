"""A helper finds the salient pixels by a pass of its own and clears the gradients after it: those of the loss, too.

The same happens where the helper of virtual adversarial training clears the network after the loss went backward.
No public report of it was found.
"""
# expects: question wasted at "net.zero_grad()"
# expects: waste wasted at "picked.sum().backward()"
# cure: "    net.zero_grad()\n" -> ""
# cure: "picked.sum().backward()" -> "picked.sum().backward(inputs=[images])"
# trains: net

import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)


def saliency(images, labels):
    images = images.clone().requires_grad_()
    picked = net(images).gather(1, labels[:, None])
    picked.sum().backward()
    net.zero_grad()
    return images.grad.abs()


for _ in range(5):
    images, labels = torch.randn(16, 8), torch.randint(0, 4, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    salient = saliency(images, labels) > 0.1
    nn.functional.mse_loss(net(images * salient), net(images)).backward()
    optimizer.step()
