"""A term of the loss, the ratio of signal and noise, is computed by NumPy: it moves nothing."""
# expects: question dead at "arrays = "
# cure: "loss = nn.functional.l1_loss(output, signal) - 0.1 * ratio" -> "loss = nn.functional.l1_loss(output, signal)"

import numpy as np
import torch
from torch import nn
from torch.optim import Adam


def snr(clean, noisy):
    return 10 * np.log10((clean**2).sum() / ((clean - noisy) ** 2).sum())


network = nn.Conv1d(1, 1, 9, padding=4)
optimizer = Adam(network.parameters())
for _ in range(20):
    signal = torch.rand(4, 1, 32)
    output = network(signal)
    arrays = signal.numpy(), output.detach().cpu().numpy()
    ratio = torch.tensor([snr(a, b) for a, b in zip(*arrays, strict=True)]).mean()
    loss = nn.functional.l1_loss(output, signal) - 0.1 * ratio
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
