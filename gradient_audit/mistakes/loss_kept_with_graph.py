"""A running loss keeps the graph of the last step."""

import torch

MESSAGES = (
    "backward through the graph a second time",
    *("CUDA out of memory", "CUDA error: out of memory", "HIP out of memory", "torch.OutOfMemoryError"),
    *("torch.cuda.OutOfMemoryError", "显存不足", "显存不够", "显存溢出", "爆显存", "显存越来越大", "显存一直增长"),
)
HINTS = ("running", "hidden", "total_loss")
WHY = """The second step adds to a tensor that still refers to the graph of the first, which backward() has freed. An
image pool of past fakes, or the hidden state of an LSTM, does the same. What is only kept, as by losses.append(loss),
raises nothing, but each step's graph stays, until the GPU is out of memory. Where the first step already is, the batch
or the networks are too big: docs/questions.md, question 36."""
CURE = """detach() whatever is kept from one step to the next; empty a list of losses after each step. For a number to
print, .item() or .detach()."""
RIGHT_RETURNS = 2.0


def wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    total = torch.zeros(())
    for _ in range(2):
        total = total + weight**2
        total.backward()  # the second time also through the first step
    return total


def right():
    weight = torch.tensor(1.0, requires_grad=True)
    total = torch.zeros(())
    for _ in range(2):
        loss = weight**2
        loss.backward()
        total = total + loss.detach()
    return total
