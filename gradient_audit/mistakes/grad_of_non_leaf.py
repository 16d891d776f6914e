""".grad of a result is None: only leaves keep theirs."""

import torch

MESSAGES = ("attribute of a Tensor that is not a leaf Tensor is being accessed",)
WHY = """To save memory a backward pass drops the gradients of results on its way; only leaves that require grad,
such as w1, w2 and w3, keep theirs. By hand: dl4 = 1/4; dl1 = (l3 + l2 w3) / 4 = (8 + 20) / 4 = 7."""
CURE = "retain_grad() on the tensor before backward(). is_leaf tells which kind a tensor is."
WRONG_RETURNS = (40.0, None, None, (28.0, 8.0, 10.0))
RIGHT_RETURNS = (40.0, [[0.25, 0.25], [0.25, 0.25]], [[7.0, 7.0], [7.0, 7.0]], (28.0, 8.0, 10.0))


def wrong():
    i = torch.ones(2, 2)
    w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
    l1 = i * w1
    l2, l3 = l1 + w2, l1 * w3
    l4 = l2 * l3
    loss = l4.mean()
    loss.backward()
    return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)


def right():
    i = torch.ones(2, 2)
    w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
    l1 = i * w1
    l2, l3 = l1 + w2, l1 * w3
    l4 = l2 * l3
    loss = l4.mean()
    l1.retain_grad()
    l4.retain_grad()
    loss.backward()
    return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)
