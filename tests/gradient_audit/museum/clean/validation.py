"""A validation under no_grad(), samples in eval() under inference_mode(), a schedule, and a loss summed as a number."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
running_loss = 0.0

for _ in range(5):
    features, labels = torch.randn(4, 4), torch.randint(3, (4,))
    loss = nn.functional.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    running_loss += loss.item()
    model.eval()
    with torch.no_grad():
        running_loss += nn.functional.cross_entropy(model(torch.randn(4, 4)), labels).item()
    with torch.inference_mode():
        print(model(torch.randn(1, 4)).argmax().item(), running_loss)
    model.train()
