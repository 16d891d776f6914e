"""Images of a class of their own, as fastai and torchvision have them: its line is none of the loop's."""
# expects: nothing
# says: `tensors_of_a_subclass.py:23 loss.backward()`

import torch
from torch import nn


class Image(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())

for _ in range(5):
    images = torch.randn(3, 4).as_subclass(Image)
    optimizer.zero_grad()
    scores = net(images)
    loss = scores.square().mean() + scores.abs().mean()
    loss.backward()
    optimizer.step()
