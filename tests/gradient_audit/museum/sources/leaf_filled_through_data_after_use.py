"""A leaf is filled through .data after its use: no error, and the gradient of other numbers than the loss.

Written after the write-up, which prints no such code.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: error overwritten at "a.data.fill_(10.0)"
# mistake: data-edit
# cure: "a.data.fill_(10.0)" -> "b = torch.full_like(a, 10.0)"
# cure: "== [5, 5, 5, 5]" -> "== [5, 2.5, 1, 1.5]"

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
loss = (a * a).mean()
a.data.fill_(10.0)
loss.backward()
assert a.grad.tolist() == [5, 5, 5, 5]  # for 5, 2.5, 1, 1.5
