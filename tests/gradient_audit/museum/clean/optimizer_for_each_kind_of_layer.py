"""The layers of one model under two optimizers that always step together, as Muon and AdamW do."""
# expects: nothing

import torch
from torch import nn

model = nn.ModuleDict({"embedding": nn.Embedding(9, 8), "hidden": nn.Linear(8, 8), "head": nn.Linear(8, 9)})
optimizers = [
    torch.optim.AdamW([*model["embedding"].parameters(), *model["head"].parameters()]),
    torch.optim.SGD(model["hidden"].parameters(), lr=0.1),
]
for _ in range(4):
    x = torch.randint(9, (4, 5))
    scores = model["head"](torch.tanh(model["hidden"](model["embedding"](x))))
    nn.functional.cross_entropy(scores.flatten(0, 1), x.flatten()).backward()
    for optimizer in optimizers:
        optimizer.step()
    for optimizer in optimizers:
        optimizer.zero_grad()
