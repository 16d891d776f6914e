"""A loss without a graph is made to require grad."""

import torch

WHY = """requires_grad_() on a loss, or Variable(loss.data, requires_grad=True), stops the error "element 0 of tensors
does not require grad", but the loss is then a leaf that depends on nothing: the weights are not trained."""
CURE = "Find where the graph was lost: no-graph, step-function and loss-rebuilt show how."
RIGHT_RETURNS = 2.0


def wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    loss = (weight.detach() ** 2).requires_grad_()
    loss.backward()
    return weight.grad


def right():
    weight = torch.tensor(1.0, requires_grad=True)
    (weight**2).backward()
    return weight.grad
