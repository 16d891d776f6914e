"""The same without detach().

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# A full stop ends the printed line, which is no Python.
# differs: "device='cuda')." -> "device='cuda')"
# The write-up asks for detach(), and prints it.
# differs: "y.cpu().detach()" -> "y.cpu()"
# expects: mistake numpy-of-grad at "y.cpu().numpy()"

import torch

if not torch.cuda.is_available():  # what is printed for a GPU then runs on the CPU
    rand = torch.rand
    torch.rand = lambda size, device, **options: rand(size, **options)

y = torch.rand([3, 3], requires_grad=True, device="cuda")
y_ = y.cpu().numpy()
