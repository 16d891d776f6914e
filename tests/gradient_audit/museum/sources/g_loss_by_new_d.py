"""D's whole update, then G's loss from the D just updated: right; what it leaves in D is cleared later.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# expects: waste wasted at "G_loss.backward()"

import torch
from torch import nn


def near(number, wanted):
    return abs(number.item() - wanted) < 1e-6


print(f"Pytorch version: {torch.__version__} \n")
X = torch.ones(size=[1, 1, 1, 1]).requires_grad_(False)
G = nn.Conv2d(1, 1, kernel_size=1, stride=1, padding=0, bias=False)
G.weight.data.fill_(0.5)
G_optim = torch.optim.SGD(G.parameters(), lr=1.0)
D = nn.Conv2d(1, 1, kernel_size=1, stride=1, padding=0, bias=False)
D.weight.data.fill_(0.7)
D_optim = torch.optim.SGD(D.parameters(), lr=1.0)
print(f"Init grad: {G.weight.grad} {D.weight.grad}")
print(f"Init weight: {G.weight.detach()} {D.weight.detach()} \n")

Y = G(X)
D_optim.zero_grad()
D_loss = D(Y.detach()) ** 2
D_loss.backward()
D_optim.step()
print(f"Checkpoint 1 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 1 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(D.weight, 0.35)

G_optim.zero_grad()
G_loss = D(Y) ** 2
G_loss.backward()
G_optim.step()
print(f"Checkpoint 2 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 2 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(G.weight.grad, 0.1225)
assert near(D.weight.grad, 0.525)
assert near(G.weight, 0.3775)
