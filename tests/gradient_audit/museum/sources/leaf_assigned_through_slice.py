"""A leaf is assigned to through a slice; an old PyTorch raised only in backward().

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: mistake leaf-in-place at "a[:] = 0"
# cure: "a[:] = 0" -> "with torch.no_grad():\n    a[:] = 0"

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
print(a, a.is_leaf)

a[:] = 0
print(a, a.is_leaf)

loss = (a * a).mean()
loss.backward()
