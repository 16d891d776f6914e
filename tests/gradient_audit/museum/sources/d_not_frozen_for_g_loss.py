"""The same without freezing D: G's loss adds to D's gradient, and D steps on the sum.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# expects: error mixed at "G_loss.backward()"
# mistake: d-steps-on-g-loss
# cure: "G_loss.backward()" -> "G_loss.backward(inputs=list(G.parameters()))"
# cure: "assert near(D.weight.grad, 0.7)" -> "assert near(D.weight.grad, 0.35)"
# cure: "assert near(D.weight, 0.0)" -> "assert near(D.weight, 0.35)"

import torch
from torch import nn

X = torch.ones(1, 1, 1, 1)
G, D = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 1, bias=False)
G.weight.data.fill_(0.5)
D.weight.data.fill_(0.7)
G_optim, D_optim = torch.optim.SGD(G.parameters(), lr=1.0), torch.optim.SGD(D.parameters(), lr=1.0)


def near(number, wanted):
    return abs(number.item() - wanted) < 1e-6


Y = G(X)
D_loss = D(Y.detach()) ** 2
G_loss = D(Y) ** 2

D_loss.backward()
assert near(D.weight.grad, 0.35)
G_loss.backward()
assert near(D.weight.grad, 0.7)

G_optim.step()
D_optim.step()
assert near(D.weight, 0.0)
