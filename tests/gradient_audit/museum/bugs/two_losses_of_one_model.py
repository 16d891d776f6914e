"""Two losses of one output, and the first backward pass frees the graph that the second needs.

No public report of it was found."""
# expects: error freed at "reconstruction.backward()"
# expects: mistake second-backward at "sparsity.backward()"
# cure: "    reconstruction.backward()\n    sparsity.backward()" -> "    (reconstruction + sparsity).backward()"

import torch
from torch import nn

encoder, decoder = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(5):
    image = torch.randn(6, 3)
    code = encoder(image)
    reconstruction, sparsity = (decoder(code) - image).square().mean(), code.abs().mean()
    optimizer.zero_grad()
    reconstruction.backward()
    sparsity.backward()
    optimizer.step()
