"""The README's DANNHook: one pass, in which D's gradient is reversed on its way to the features."""
# package: pytorch-adapt==0.0.83
# expects: nothing
# trains: 3

import torch
from pytorch_adapt.hooks import DANNHook
from torch import nn

G = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
C, D = nn.Linear(16, 4), nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
models = {"G": G, "C": C, "D": D}
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-4) for model in models.values()]
hook = DANNHook(optimizers)
for _ in range(10):
    data = {
        "src_imgs": torch.randn(8, 10),
        "target_imgs": torch.randn(8, 10),
        "src_labels": torch.randint(0, 4, (8,)),
        "src_domain": torch.zeros(8),
        "target_domain": torch.ones(8),
    }
    _, loss = hook({**models, **data})
