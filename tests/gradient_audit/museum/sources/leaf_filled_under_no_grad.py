"""A leaf is filled under no_grad() before its use: right.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
print(a, a.is_leaf)

with torch.no_grad():
    a[:] = 10.0
print(a, a.is_leaf)
assert a.is_leaf

loss = (a * a).mean()
loss.backward()
print(a.grad)
assert a.grad.tolist() == [5, 5, 5, 5]
