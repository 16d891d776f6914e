"""An array of a tensor that requires grad: detached, on the CPU, in either order.

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# A full stop ends the printed line, which is no Python.
# differs: "device='cuda')." -> "device='cuda')"
# expects: nothing

import time

import torch

if not torch.cuda.is_available():  # what is printed for a GPU then runs on the CPU
    rand = torch.rand
    torch.rand = lambda size, device, **options: rand(size, **options)

x = torch.rand([3, 3], device="cuda")
x_ = x.cpu().numpy()

y = torch.rand([3, 3], requires_grad=True, device="cuda")
y_ = y.cpu().detach().numpy()

start_t = time.time()
for i in range(10000):  # noqa: B007
    y_ = y.cpu().detach().numpy()
print(time.time() - start_t)

start_t = time.time()
for i in range(10000):  # noqa: B007
    y_ = y.detach().cpu().numpy()
print(time.time() - start_t)
assert (y.cpu().detach().numpy() == y.detach().cpu().numpy()).all()
