"""An output requires grad because the weights do, though the input does not.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 16, 3, 1), nn.Conv2d(16, 32, 3, 1))

images = torch.randn(8, 3, 12, 12)
assert not images.requires_grad
assert all(parameter.requires_grad for parameter in net.parameters())
assert net(images).requires_grad
