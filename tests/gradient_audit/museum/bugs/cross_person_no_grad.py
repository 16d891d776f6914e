"""The adversarial loss is computed under no_grad() and then told to require grad: its backward pass reaches nothing.

https://github.com/Hangwei12358/cross-person-HAR/issues/3
"""
# expects: error dead at "loss_false.backward()"
# cure: "    with torch.no_grad():\n        loss = nn" -> "    loss = nn"
# cure: "    loss.requires_grad = True\n" -> ""
# mistake: loss-made-leaf

import torch
from torch import nn

model, classifier = nn.Linear(6, 4), nn.Linear(4, 3)
optimizer = torch.optim.Adam([*model.parameters(), *classifier.parameters()], lr=1e-3)


def false_loss(x, labels):
    with torch.no_grad():
        loss = nn.functional.cross_entropy(classifier(model(x)), labels)
    loss.requires_grad = True
    return -loss


for _ in range(5):
    x, labels = torch.randn(4, 6), torch.randint(3, (4,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(classifier(model(x)), labels)
    loss.backward()
    optimizer.step()

    optimizer.zero_grad()
    loss_false = false_loss(x, labels)
    loss_false.backward()
    optimizer.step()
