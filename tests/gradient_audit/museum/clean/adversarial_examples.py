"""FGSM on a frozen copy: a pass that fills the .grad of images alone."""
# expects: nothing

import copy

import torch
from torch import nn

model = nn.Linear(4, 2)
frozen = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    images, labels = torch.randn(4, 4, requires_grad=True), torch.randint(2, (4,))
    nn.functional.cross_entropy(frozen(images), labels).backward()
    adversarial = (images + 0.1 * images.grad.sign()).detach()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(adversarial), labels).backward()
    optimizer.step()
