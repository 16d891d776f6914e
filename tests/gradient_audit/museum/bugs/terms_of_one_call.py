"""A helper makes a term for each batch, and D steps between two passes: the helper's lines are told, and the loop's.

No public report of it was found."""
# expects: error overwritten at "opt_d.step()"
# says: + `"loss = losses("
# says: via "return sum("
# says: - read by     `"fake_score = judge("
# says: via "return self.main(x)"
# cure: "fake_score.mean().backward()" -> "judge(G(torch.randn(6, 4))).mean().backward()"

import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))

    def forward(self, x):
        return self.main(x)


def losses(scores):
    return sum((1 - score).pow(2).mean() for score in scores)


torch.manual_seed(0)
G, judge = nn.Linear(4, 8), Judge()
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(judge.parameters())
fake_score = judge(G(torch.randn(6, 4)))
loss = losses([judge(torch.randn(6, 8)), fake_score])
loss.backward(retain_graph=True, inputs=list(judge.parameters()))
opt_d.step()
fake_score.mean().backward()
opt_g.step()
