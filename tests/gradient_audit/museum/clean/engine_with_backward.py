"""An engine has a method backward(), which scales the loss and calls the one of PyTorch."""
# expects: nothing

import torch
from torch import nn


class Engine:
    def backward(self, loss):
        (loss / 2).backward()


net, engine = nn.Linear(4, 2), Engine()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    engine.backward(loss)
    optimizer.step()
