"""The same without freezing D: G's loss adds to D's gradient, and D steps on the sum.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# printed: both_backward_then_both_steps.txt
# The write-up: the same without these two statements.
# differs: "set_requires_grad(D, False)\n" -> ""
# differs: "set_requires_grad(D, True)\n" -> ""
# expects: error mixed at "G_loss.backward()"
# mistake: d-steps-on-g-loss
# cure: "G_loss.backward()" -> "G_loss.backward(inputs=list(G.parameters()))"
# cure: "retain_graph=True" -> ""
# cure: "assert near(D.weight.grad, 0.7)" -> "assert near(D.weight.grad, 0.35)"
# cure: "assert near(D.weight, 0.0)" -> "assert near(D.weight, 0.35)"

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
assert near(D.weight.grad, 0.35)

G_loss.backward()
print(f"Checkpoint 2 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 2 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(D.weight.grad, 0.7)

G_optim.step()
print(f"Checkpoint 3 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 3 weight: {G.weight.detach()} {D.weight.detach()} \n")

D_optim.step()
print(f"Checkpoint 4 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 4 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert near(D.weight, 0.0)
