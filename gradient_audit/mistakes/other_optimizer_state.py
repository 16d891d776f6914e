"""An optimizer loads the state of another."""

import torch
from torch import nn

MESSAGES = (
    "parameter group that doesn't match the size of optimizer's group",
    "loaded state dict has a different number of parameter groups",
    "If capturable=False, state_steps should not be CUDA tensors",
)
WHY = """The state is stored by position. It fits only an optimizer with as many weights, in the same order: G's
state loaded into D's optimizer, or that of a network before a layer was added, does not fit. If the numbers
happen to agree there is no error."""
CURE = "Store each optimizer under its own name, and build both as they were when they were stored."
RIGHT_RETURNS = 0.5


def wrong():
    one, two = nn.Linear(1, 1, bias=False), nn.Linear(1, 1)
    stored = torch.optim.SGD(one.parameters(), lr=0.5).state_dict()
    optimizer = torch.optim.SGD(two.parameters(), lr=1.0)
    optimizer.load_state_dict(stored)
    return optimizer.param_groups[0]["lr"]


def right():
    two = nn.Linear(1, 1)
    stored = torch.optim.SGD(two.parameters(), lr=0.5).state_dict()
    optimizer = torch.optim.SGD(two.parameters(), lr=1.0)
    optimizer.load_state_dict(stored)
    return optimizer.param_groups[0]["lr"]
