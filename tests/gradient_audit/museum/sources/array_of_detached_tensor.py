"""An array of a tensor that requires grad: detached, on the CPU, in either order.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: nothing

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
x, y = torch.rand(3, 3, device=device), torch.rand(3, 3, requires_grad=True, device=device)
assert x.cpu().numpy().shape == (3, 3)
assert (y.cpu().detach().numpy() == y.detach().cpu().numpy()).all()
