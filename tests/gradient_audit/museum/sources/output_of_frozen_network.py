"""With every weight frozen, the output requires no grad.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 16, 3, 1), nn.Conv2d(16, 32, 3, 1))

for parameter in net.parameters():
    parameter.requires_grad = False
assert not net(torch.randn(8, 3, 12, 12)).requires_grad
