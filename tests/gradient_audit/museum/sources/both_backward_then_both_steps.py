"""Both losses go backward before either optimizer steps, with D frozen for G's: right, at two needless costs.

No later pass comes through the graph that retain_graph keeps: the fakes of D's loss are detached, and G's loss has a
forward pass of its own. And D is frozen after that pass, so its gradient is computed and dropped.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# expects: nothing

import torch
from torch import nn


def near(number, wanted):
    return abs(number.item() - wanted) < 1e-6


def set_requires_grad(net: nn.Module, mode=True):
    for p in net.parameters():
        p.requires_grad_(mode)


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

G_optim.zero_grad()
D_optim.zero_grad()
Y = G(X)
D_loss = D(Y.detach()) ** 2
G_loss = D(Y) ** 2

D_loss.backward(retain_graph=True)
print(f"Checkpoint 1 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 1 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert G.weight.grad is None
assert near(D.weight.grad, 0.35)

set_requires_grad(D, False)
G_loss.backward()
set_requires_grad(D, True)
print(f"Checkpoint 2 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 2 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(G.weight.grad, 0.49)
assert near(D.weight.grad, 0.35)

G_optim.step()
print(f"Checkpoint 3 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 3 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(G.weight, 0.01)

D_optim.step()
print(f"Checkpoint 4 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 4 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(D.weight, 0.35)
