"""autograd.grad() for a tensor the output never used."""

import torch

MESSAGES = ("appears to not have been used in the graph", "One of the differentiated Tensors does not require grad")
WHY = "D got another tensor than autograd.grad(). A copy or a view of it that is made after the call does the same."
CURE = "Give autograd.grad() the same tensor object as D. allow_unused=True only turns the error into a None."
RIGHT_RETURNS = ([0.7, 2.8],)


def wrong():
    real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    weight = torch.tensor(0.7, requires_grad=True)
    score = (weight * fake**2).sum()  # D did not get `mixed`
    return torch.autograd.grad(score, mixed)


def right():
    real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    weight = torch.tensor(0.7, requires_grad=True)
    score = (weight * mixed**2).sum()
    return torch.autograd.grad(score, mixed)
