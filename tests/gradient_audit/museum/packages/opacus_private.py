"""The README's example: the optimizer clips the gradient of each sample and adds noise."""
# package: opacus==1.6.0
# expects: nothing

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = SGD(model.parameters(), lr=0.05)
data_loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), batch_size=8)
privacy_engine = PrivacyEngine()
model, optimizer, data_loader = privacy_engine.make_private(
    module=model, optimizer=optimizer, data_loader=data_loader, noise_multiplier=1.1, max_grad_norm=1.0
)
for _ in range(2):
    for x, y in data_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
