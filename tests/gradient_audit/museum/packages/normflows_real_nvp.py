"""Its notebook on Real NVP: a flow whose last layers start at zero, by the forward divergence from two moons."""
# package: normflows==1.7.3
# expects: nothing
# trains: 1

import normflows as nf
import torch

base = nf.distributions.base.DiagGaussian(2)
flows = []
for _ in range(4):
    param_map = nf.nets.MLP([1, 16, 16, 2], init_zeros=True)
    flows.append(nf.flows.AffineCouplingBlock(param_map))
    flows.append(nf.flows.Permute(2, mode="swap"))
model = nf.NormalizingFlow(base, flows)
target = nf.distributions.TwoMoons()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-5)

for _ in range(10):
    optimizer.zero_grad()
    x = target.sample(64)
    loss = model.forward_kld(x)
    if ~(torch.isnan(loss) | torch.isinf(loss)):
        loss.backward()
        optimizer.step()
