"""StyleGAN3: gradients are flattened, cleaned of NaN, and assigned again as parts of one tensor."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(4, 4)).square().mean().backward()
    parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
    flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
    torch.nan_to_num(flat, nan=0, posinf=1e5, neginf=-1e5, out=flat)
    for parameter, gradient in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = gradient.reshape(parameter.shape)
    optimizer.step()
