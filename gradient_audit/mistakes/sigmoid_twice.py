"""A sigmoid, then BCE with logits: the sigmoid twice."""

import torch
import torch.nn.functional as F

WHY = """The loss treats D's probabilities as logits and applies a second sigmoid. D's sigmoid is flat where D is
confident (logit -10): G gets almost no gradient where it should be largest."""
CURE = "No sigmoid in D; binary_cross_entropy_with_logits on its output. A sigmoid only to print D(x)."
UNSEEN = "D's last layer. The mean of D's loss on real and on fake images cannot fall below 0.50."
WRONG_RETURNS = [-1.135e-05, -0.04719]
RIGHT_RETURNS = [-0.5, -0.25]


def wrong():
    logits = torch.tensor([-10.0, 0.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(torch.sigmoid(logits), torch.ones(2)).backward()
    return logits.grad


def right():
    logits = torch.tensor([-10.0, 0.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(logits, torch.ones(2)).backward()
    return logits.grad
