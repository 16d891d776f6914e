"""Two losses that share what comes before them, and no term, go backward one after the other."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters())
for _ in range(5):
    real_score, fake_score = critic(torch.randn(8, 2)), critic(torch.randn(8, 2) + 1)
    optimizer.zero_grad()
    (fake_score.mean() - real_score.mean()).backward(retain_graph=True)
    (0.001 * real_score.pow(2).mean()).backward()
    optimizer.step()
