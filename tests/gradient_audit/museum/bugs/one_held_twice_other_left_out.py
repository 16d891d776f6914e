"""Two translators under one optimizer, which was given the first one twice: the second never learns."""
# expects: error ownerless at "optimizer_G = "
# mistake: parameter-twice
# cure: "netG_A.parameters(), netG_A" -> "netG_A.parameters(), netG_B"
# trains: netG_A, netG_B

import itertools
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of it
netG_A = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
netG_B = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
optimizer_G = torch.optim.Adam(itertools.chain(netG_A.parameters(), netG_A.parameters()))

for _ in range(5):
    real_A, real_B = torch.randn(5, 4), torch.randn(5, 4)
    cycle_A, cycle_B = netG_B(netG_A(real_A)), netG_A(netG_B(real_B))
    loss_G = nn.functional.l1_loss(cycle_A, real_A) + nn.functional.l1_loss(cycle_B, real_B)
    netG_A.zero_grad()
    netG_B.zero_grad()
    loss_G.backward()
    optimizer_G.step()
