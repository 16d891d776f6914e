"""Sparse coding: the inner loop, which finds the codes, leaves gradients in the dictionary, and a step uses them."""
# expects: error mixed at "loss_of_codes.backward()"
# cure: "loss_of_codes.backward()" -> "loss_of_codes.backward(inputs=[codes])"

import torch
from torch import nn
from torch.optim import SGD

dictionary = nn.Linear(6, 8, bias=False)
optimizer = SGD(dictionary.parameters(), lr=0.1)
for _ in range(20):
    batch = torch.randn(5, 8)
    codes = torch.zeros(5, 6, requires_grad=True)
    optimizer_of_codes = SGD([codes], lr=0.1)
    for _ in range(3):
        optimizer_of_codes.zero_grad()
        loss_of_codes = nn.functional.mse_loss(dictionary(codes), batch) + 0.01 * codes.abs().sum()
        loss_of_codes.backward()
        optimizer_of_codes.step()
    nn.functional.mse_loss(dictionary(codes.detach()), batch).backward()
    optimizer.step()
    optimizer.zero_grad()
