"""The same as PyTorch 1.2 ran it, whose steps raised no version: 2 * 0.5 * 0.7 * 0.35, of the old D and the new one.

From a write-up of PyTorch 1.9's time on the right and the wrong orders of a GAN's two updates; no address is known.
"""
# printed: d_steps_before_g_backward.txt
# expects: error overwritten at "D_optim.step()"
# mistake: data-edit
# cure: "G_loss.backward()" -> "(D(Y) ** 2).backward()"
# cure: "G.weight.grad.item() - 0.245" -> "G.weight.grad.item() - 0.1225"
# cure: "D.weight.grad.item() - 0.7" -> "D.weight.grad.item() - 0.525"
# cure: "G.weight.item() - 0.255" -> "G.weight.item() - 0.3775"

import torch
from torch import nn


class OldSGD(torch.optim.SGD):
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.data.add_(parameter.grad, alpha=-1.0)


torch.optim.SGD = OldSGD


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
G_optim.zero_grad()
D_optim.zero_grad()
D_loss = D(Y.detach()) ** 2
G_loss = D(Y) ** 2

D_loss.backward()
D_optim.step()
print(f"Checkpoint 1 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 1 weight: {G.weight.detach()} {D.weight.detach()} \n")

G_loss.backward()
G_optim.step()
print(f"Checkpoint 2 grad: {G.weight.grad} {D.weight.grad}")
print(f"Checkpoint 2 weight: {G.weight.detach()} {D.weight.detach()} \n")
assert abs(G.weight.grad.item() - 0.245) < 1e-6
assert abs(D.weight.grad.item() - 0.7) < 1e-6
assert abs(G.weight.item() - 0.255) < 1e-6
