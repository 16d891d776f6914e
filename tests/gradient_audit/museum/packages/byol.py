"""The README's loop. A pass in `__init__` makes the projector and the target; the target is an average."""
# package: byol-pytorch==0.9.1
# expects: nothing

import torch
from byol_pytorch import BYOL
from torchvision import models

resnet = models.resnet18(weights=None)
learner = BYOL(resnet, image_size=32, hidden_layer="avgpool", projection_size=16, projection_hidden_size=32)
opt = torch.optim.Adam(learner.parameters(), lr=3e-4)

for _ in range(10):
    images = torch.rand(4, 3, 32, 32)
    loss = learner(images)
    opt.zero_grad()
    loss.backward()
    opt.step()
    learner.update_moving_average()
