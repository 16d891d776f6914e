"""A result is edited after a square has saved it.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: error overwritten at "b[0] = 1000.0"
# expects: mistake edit-after-use at "loss.backward()"
# cure: "b[0] = 1000.0" -> "c = torch.cat([torch.tensor([1000.0]), b[1:]])"
# cure: "assert b._version == 1" -> "assert b._version == 0"

import torch

a = torch.tensor([1.0, 3.0], requires_grad=True)
b = a + 2
print(b._version)
assert b._version == 0

loss = (b * b).mean()
b[0] = 1000.0
print(b._version)
assert b._version == 1

loss.backward()
