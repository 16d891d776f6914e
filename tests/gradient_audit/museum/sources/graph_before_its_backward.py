"""Leaves have no grad_fn, results have one, and nothing has a gradient before backward().

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

input = torch.ones([2, 2], requires_grad=False)
w1 = torch.tensor(2.0, requires_grad=True)
w2 = torch.tensor(3.0, requires_grad=True)
w3 = torch.tensor(4.0, requires_grad=True)

l1 = input * w1
l2 = l1 + w2
l3 = l1 * w3
l4 = l2 * l3
loss = l4.mean()

print(w1.data, w1.grad, w1.grad_fn)
assert w1.is_leaf and (w1.grad, w1.grad_fn) == (None, None)

print(l1.data, l1.grad, l1.grad_fn)
assert not l1.is_leaf and type(l1.grad_fn).__name__ == "MulBackward0" and l1.eq(2).all()

print(loss.data, loss.grad, loss.grad_fn)
assert loss.item() == 40 and type(loss.grad_fn).__name__ == "MeanBackward0"
