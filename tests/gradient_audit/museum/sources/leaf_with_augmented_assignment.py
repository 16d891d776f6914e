"""The same as an augmented assignment.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# The write-up prints this in a comment.
# differs: "a.add_(10.)" -> "a += 10."
# expects: mistake leaf-in-place at "a += 10.0"
# cure: "a += 10.0" -> "b = a + 10.0"
# cure: "(a * a)" -> "(b * b)"

import torch

a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
a += 10.0
(a * a).mean().backward()
