"""The adversarial loss becomes a number in place of a logged copy of it; another loss is logged after it.

https://github.com/guopengf/FL-MRCM/issues/10
"""
# expects: question dead at "loss_adv = loss_adv.detach().item()"
# cure: "    loss_adv = loss_adv.detach().item()\n    logged.append(loss_adv)" -> "    logged.append(loss_adv.item())"

import torch
from torch import nn

encoder, decoder, judge = nn.Linear(16, 8), nn.Linear(8, 16), nn.Linear(8, 1)
optimizer = torch.optim.RMSprop([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
optimizer_d = torch.optim.RMSprop(judge.parameters(), lr=1e-3)
bce, logged = nn.functional.binary_cross_entropy_with_logits, []

for _ in range(5):
    source, target = torch.randn(4, 16), torch.randn(4, 16)
    code = encoder(source)
    judge.requires_grad_(True)
    optimizer_d.zero_grad()
    bce(judge(code.detach()), torch.zeros(4, 1)).backward()
    optimizer_d.step()

    judge.requires_grad_(False)
    loss_adv = bce(judge(code), torch.ones(4, 1))
    loss_adv = loss_adv.detach().item()
    logged.append(loss_adv)
    loss_l1 = (decoder(code) - target).abs().mean()
    logged.append(loss_l1.item())
    loss = loss_l1 + loss_adv
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
