"""Leaves have no grad_fn, results have one, and nothing has a gradient before backward().

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

inputs = torch.ones(2, 2)
w1, w2, w3 = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
l1 = inputs * w1
l2, l3 = l1 + w2, l1 * w3
l4 = l2 * l3
loss = l4.mean()

assert w1.is_leaf and (w1.grad, w1.grad_fn) == (None, None)
assert not l1.is_leaf and type(l1.grad_fn).__name__ == "MulBackward0" and l1.eq(2).all()
assert loss.item() == 40 and type(loss.grad_fn).__name__ == "MeanBackward0"
