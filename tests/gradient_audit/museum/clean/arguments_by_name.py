"""Every call that an audit watches has its arguments by name, in another order."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)
network, other = nn.Linear(2, 1), nn.Linear(2, 1)
other.requires_grad_(requires_grad=False)
optimizer, scaler = torch.optim.SGD(lr=0.1, params=network.parameters()), torch.amp.GradScaler(device="cpu")
seen = []


def closure():
    optimizer.zero_grad()
    loss = network(torch.ones(1, 2)).sum()
    loss.backward(inputs=list(network.parameters()))
    return loss


for _ in range(3):
    nn.Module.zero_grad(set_to_none=False, self=network)
    optimizer.zero_grad(set_to_none=True)
    output = network(torch.ones(1, 2))
    torch.Tensor.register_hook(hook=lambda gradient: seen.append(gradient.item()), self=output)
    torch.autograd.backward(tensors=scaler.scale(outputs=output.sum() + output.square().sum()))
    scaler.unscale_(optimizer=optimizer)
    seen.append(torch.autograd.grad(inputs=(network.weight,), outputs=network(torch.ones(1, 2)).sum())[0].tolist())
    nn.utils.clip_grad_norm_(error_if_nonfinite=False, max_norm=1.0, parameters=network.parameters())
    nn.utils.clip_grad_value_(clip_value=1.0, parameters=list(network.parameters()))
    scaler.step(optimizer=optimizer)
    scaler.update(new_scale=None)
    optimizer.step(closure=closure)
