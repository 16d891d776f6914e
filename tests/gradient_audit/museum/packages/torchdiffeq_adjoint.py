"""Its examples/ode_demo.py by the adjoint: `backward()` solves an equation by `autograd.grad()`."""
# package: torchdiffeq==0.2.5
# expects: nothing
# trains: 1

import torch
from torch import nn, optim
from torchdiffeq import odeint_adjoint as odeint

true_y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0.0, 5.0, 50)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t)


def get_batch():
    s = torch.randperm(40)[:8]
    return true_y[s], t[:5], torch.stack([true_y[s + i] for i in range(5)], dim=0)


func = ODEFunc()
optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(1, 11):
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    pred_y = odeint(func, batch_y0, batch_t)
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    if itr % 5 == 0:
        with torch.no_grad():
            loss = torch.mean(torch.abs(odeint(func, true_y0, t) - true_y))
