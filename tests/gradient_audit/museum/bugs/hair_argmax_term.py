"""One term of the loss is computed from an argmax, which has no gradient.

https://github.com/wonbeomjang/mobile-hair-segmentation-pytorch/issues/3
"""
# expects: question dead at "mask = predicted.argmax(1, k"
# cure: "predicted.argmax(1, keepdim=True).float()" -> "predicted.softmax(1)[:, 1:]"

import torch
from torch import nn

net = nn.Conv2d(1, 2, 3, padding=1)
optimizer = torch.optim.Adam(net.parameters())


def gradient_loss(predicted, gray):
    mask = predicted.argmax(1, keepdim=True).float()
    return (mask.diff(dim=3) * gray.diff(dim=3)).abs().mean()


for _ in range(5):
    images, masks = torch.randn(2, 1, 8, 8), torch.randint(2, (2, 8, 8))
    predicted = net(images)
    loss = nn.functional.cross_entropy(predicted, masks) + 0.5 * gradient_loss(predicted, images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
