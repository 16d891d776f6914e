"""A leaf is filled under no_grad() after its use.

Written after the write-up, which prints no such code.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: error overwritten at "a[:] = 10.0"
# expects: mistake edit-after-use at "loss.backward()"
# cure: "a[:] = 10.0" -> "b = torch.full_like(a, 10.0)"

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
loss = (a * a).mean()
with torch.no_grad():
    a[:] = 10.0
loss.backward()
