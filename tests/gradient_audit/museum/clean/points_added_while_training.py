"""Splatting adds points: a new parameter takes the old one's place in the optimizer, and the column goes on."""
# expects: nothing
# networks: xyz, exposure

import torch
from torch import nn

xyz, exposure = nn.Parameter(torch.randn(5, 3)), nn.Parameter(torch.ones(3))
optimizer, other = torch.optim.Adam([xyz], 1e-2), torch.optim.Adam([exposure], 1e-2)
for step in range(1, 9):
    loss = (xyz * exposure).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for each in (optimizer, other):
            each.step()
            each.zero_grad(set_to_none=True)
        if step == 2:
            state = optimizer.state.pop(xyz)
            state = {key: torch.cat([v, torch.zeros_like(v[:2])]) if v.dim() else v for key, v in state.items()}
            xyz = nn.Parameter(torch.cat([xyz, xyz[:2]]))
            optimizer.param_groups[0]["params"][0] = xyz
            optimizer.state[xyz] = state
