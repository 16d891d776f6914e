"""The same without detach().

https://www.cnblogs.com/ of 2022-10-12, by _yanghh: PyTorch的Autograd机制
"""
# expects: mistake numpy-of-grad at "y.cpu().numpy()"

import torch

y = torch.rand(3, 3, requires_grad=True)
y.cpu().numpy()
