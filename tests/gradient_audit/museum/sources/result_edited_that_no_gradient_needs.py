"""A result is edited after a sum, whose gradient does not need it: right.

Written after the write-up, which prints no such code.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

a = torch.tensor([1.0, 3.0], requires_grad=True)
b = a + 2
y = b + 1
b[0] = 1000.0
y.sum().backward()
assert a.grad.tolist() == [1, 1]
