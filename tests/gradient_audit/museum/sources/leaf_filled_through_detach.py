"""A leaf is filled through detach() before its use: right.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# The write-up prints this in a comment.
# differs: "a.data.fill_(10.)" -> "a.detach().fill_(10.)"
# expects: nothing

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
print(a, a.is_leaf, id(a))

a.detach().fill_(10.0)

print(a, a.is_leaf, id(a))
assert a.is_leaf

loss = (a * a).mean()
loss.backward()
print(a.grad)
assert a.grad.tolist() == [5, 5, 5, 5]
