"""Within a no_grad() block a result requires no grad, and after it one does.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

x = torch.randn(3, requires_grad=True)
print(x.requires_grad)

print((x**2).requires_grad)
assert (x**2).requires_grad

with torch.no_grad():
    print((x**2).requires_grad)
    assert not (x**2).requires_grad

print((x**2).requires_grad)
assert (x**2).requires_grad
