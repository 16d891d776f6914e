"""The divergence to the answer of the student's moving average, which changes with the student's weights."""
# expects: nothing

import copy

import torch
from torch import nn
from torch.nn import functional as F

student = nn.Linear(4, 4)
average = copy.deepcopy(student)
optimizer = torch.optim.Adam(student.parameters())
divergence = nn.KLDivLoss(reduction="batchmean")

for _ in range(20):
    x, labels = torch.randn(5, 4), torch.randint(4, (5,))
    with torch.no_grad():
        target = average(x).softmax(1)
    logits = student(x)
    loss = F.cross_entropy(logits, labels) + 0.5 * divergence(logits.log_softmax(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), student.parameters(), strict=True):
            slow.mul_(0.99).add_(fast, alpha=0.01)
