"""The setting of PyTorch's that has `double()` and `load_state_dict()` swap the contents of parameters."""
# expects: nothing
# networks: network
# says: | 3x    | used    |

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
torch.__future__.set_swap_module_params_on_conversion(True)
network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(network.parameters())
network.load_state_dict({name: tensor.clone() for name, tensor in network.state_dict().items()})

for _ in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    cross_entropy(network(x), (x[:, 0] > 0).long()).backward()
    network.double().float()
    optimizer.step()
