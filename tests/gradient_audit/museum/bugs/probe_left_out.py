"""The optimizer holds an autoencoder, and not the probe that is to learn from its detached code."""
# expects: error dead at "accuracy_loss = "
# expects: waste unfrozen at "accuracy_loss = "
# says: If it is for probe, which no optimizer holds, give that to one.
# cure: "*decoder.parameters()]" -> "*decoder.parameters(), *probe.parameters()]"

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

encoder, decoder, probe = nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(4, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(6):
    x, y = torch.randn(16, 8), torch.randint(3, (16,))
    code = encoder(x)
    accuracy_loss = cross_entropy(probe(code.detach()), y)
    optimizer.zero_grad()
    (mse_loss(decoder(code), x) + accuracy_loss).backward()
    optimizer.step()
