"""The flow of its examples/moons.ipynb: the likelihood of two dimensions."""
# package: nflows==0.14
# expects: nothing
# trains: 1

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation
from sklearn import datasets
from torch import optim

transforms = []
for _ in range(5):
    transforms.append(ReversePermutation(features=2))
    transforms.append(MaskedAffineAutoregressiveTransform(features=2, hidden_features=4))
flow = Flow(CompositeTransform(transforms), StandardNormal(shape=[2]))
optimizer = optim.Adam(flow.parameters())

for i in range(20):
    x, y = datasets.make_moons(128, noise=0.1)
    x = torch.tensor(x, dtype=torch.float32)
    optimizer.zero_grad()
    loss = -flow.log_prob(inputs=x).mean()
    loss.backward()
    optimizer.step()
    if (i + 1) % 10 == 0:
        with torch.no_grad():
            flow.log_prob(torch.randn(16, 2)).exp()
