"""Both losses go backward before either optimizer steps, with D frozen for G's: right, at two needless costs.

No later pass comes through the graph that retain_graph keeps: the fakes of D's loss are detached, and G's loss has a
forward pass of its own. And D is frozen after that pass, so its gradient is computed and dropped.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# expects: waste retained at "D_loss.backward(retain_graph=True)"
# expects: waste late at "G_loss.backward()"

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

D_loss.backward(retain_graph=True)
assert G.weight.grad is None
assert near(D.weight.grad, 0.35)

D.requires_grad_(False)
G_loss.backward()
D.requires_grad_(True)
assert near(G.weight.grad, 0.49)
assert near(D.weight.grad, 0.35)

G_optim.step()
D_optim.step()
assert near(G.weight, 0.01)
assert near(D.weight, 0.35)
