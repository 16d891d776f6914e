"""MAML adapts a copy of the model, by `.data`: the meta-model's optimizer never finds a gradient.

https://github.com/KanishJebaMathewM/Truxify/issues/13118
"""
# expects: error unreached at "p.data -= "
# expects: waste wasted at "meta_loss.backward()"
# cure: "        copy = nn.Linear(6, 1)\n        copy.load_state_dict(model.state_dict())\n" -> ""
# cure: "loss = mse(copy(support_x)" -> "loss = mse(model(support_x)"
# cure: "grad(loss, copy.parameters()" -> "grad(loss, model.parameters()"
# cure: "        for p, g in zip(copy.parameters(), grads, strict=True):\n" -> "        copy = {\n"
# cure: "p.data -= 0.01 * g" -> "name: p - 0.01 * g for (name, p), g in zip(model.named_parameters(), grads)}"
# cure: "mse(copy(query_x)" -> "mse(torch.func.functional_call(model, copy, (query_x,))"
# trains: model

import torch
from torch import nn

model, mse = nn.Linear(6, 1), nn.functional.mse_loss
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(5):
    meta_loss = 0
    for _ in range(3):
        weight, support_x, query_x = torch.randn(6, 1), torch.randn(5, 6), torch.randn(10, 6)
        copy = nn.Linear(6, 1)
        copy.load_state_dict(model.state_dict())
        loss = mse(copy(support_x), support_x @ weight)
        grads = torch.autograd.grad(loss, copy.parameters(), create_graph=True)
        for p, g in zip(copy.parameters(), grads, strict=True):
            p.data -= 0.01 * g
        meta_loss = meta_loss + mse(copy(query_x), query_x @ weight)
    optimizer.zero_grad()
    meta_loss.backward()
    optimizer.step()
