"""With every weight frozen, the output requires no grad.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch
from torch import nn

input = torch.randn(8, 3, 50, 100)
print(input.requires_grad)

net = nn.Sequential(nn.Conv2d(3, 16, 3, 1), nn.Conv2d(16, 32, 3, 1))
for param in net.named_parameters():
    param[1].requires_grad = False
    print(param[0], param[1].requires_grad)

output = net(input)
print(output.requires_grad)
assert not output.requires_grad
