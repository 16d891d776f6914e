"""The architecture's weights are also in the optimizer of the network: the training loss moves them, too."""
# expects: question shared at "optimizer_w.step()"
# expects: waste wasted at "held_out.backward()"
# networks: operations, alphas
# cure: "[*operations.parameters(), alphas]" -> "operations.parameters()"
# cure: "    loss.backward()" -> "    loss.backward(inputs=list(operations.parameters()))"
# cure: "held_out.backward()" -> "held_out.backward(inputs=[alphas])"

import torch
from torch import nn

operations = nn.ModuleList(nn.Linear(4, 3) for _ in range(2))
alphas = torch.zeros(2, requires_grad=True)
optimizer_w = torch.optim.SGD([*operations.parameters(), alphas], lr=0.1)
optimizer_a = torch.optim.Adam([alphas], lr=0.01)


def loss_of(x, labels):
    logits = sum(weight * operation(x) for weight, operation in zip(alphas.softmax(0), operations, strict=True))
    return nn.functional.cross_entropy(logits, labels)


for _ in range(5):
    loss = loss_of(torch.randn(5, 4), torch.randint(3, (5,)))
    optimizer_w.zero_grad()
    loss.backward()
    optimizer_w.step()

    held_out = loss_of(torch.randn(5, 4), torch.randint(3, (5,)))
    optimizer_a.zero_grad()
    held_out.backward()
    optimizer_a.step()
