"""A leaf is filled through detach() after its use.

Written after the write-up, which prints no such code.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: error overwritten at "a.detach().fill_(10.0)"
# expects: mistake edit-after-use at "loss.backward()"
# cure: "a.detach().fill_(10.0)" -> "b = torch.full_like(a, 10.0)"

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
loss = (a * a).mean()
a.detach().fill_(10.0)
loss.backward()
