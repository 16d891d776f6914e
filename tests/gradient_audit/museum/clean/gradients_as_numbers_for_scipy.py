"""SciPy's minimize takes the loss and its gradients as numbers, and steps on them: no optimizer of PyTorch's does."""
# expects: nothing
# says: | used

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "site-packages"))
from scipy.optimize import minimize

network = nn.Linear(3, 1)
x, y = torch.randn(20, 3), torch.randn(20, 1)


def value_and_gradient(numbers):
    nn.utils.vector_to_parameters(torch.from_numpy(numbers).float(), network.parameters())
    network.zero_grad()
    loss = nn.functional.mse_loss(network(x), y)
    loss.backward()
    return loss.item(), np.concatenate([p.grad.numpy().ravel() for p in network.parameters()])


start = nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
minimize(value_and_gradient, start, jac=True, options={"maxiter": 30})
