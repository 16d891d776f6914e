"""Labels of shape (N,), outputs of shape (N, 1): BCE raises, MSE only warns."""

import torch
import torch.nn.functional as F

MESSAGES = ("is different to the input size", "must be the same as input size")
WHY = "(N, 1) against (N,) broadcasts to N x N differences: a perfect D gets the loss 0.5, with only a warning."
CURE = "label.view_as(score) or torch.ones_like(score). In tests, warnings.simplefilter('error')."
UNSEEN = "PyTorch's warning; the shapes of scores and labels."
WRONG_RETURNS = 0.5
RIGHT_RETURNS = 0.0


def wrong():
    score, label = torch.tensor([[1.0], [0.0]]), torch.tensor([1.0, 0.0])
    return F.mse_loss(score, label)


def right():
    score, label = torch.tensor([[1.0], [0.0]]), torch.tensor([1.0, 0.0])
    return F.mse_loss(score, label.view_as(score))
