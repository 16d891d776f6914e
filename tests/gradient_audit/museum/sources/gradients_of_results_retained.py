"""retain_grad() keeps the gradients of results; no network, no optimizer.

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

for result in (l1, l4, loss):
    result.retain_grad()
loss.backward()
assert loss.grad.item() == 1
assert l4.grad.eq(0.25).all()
assert l1.grad.eq(7).all()
