"""A loss of decisions: argmax, > 0.5, counts."""

import torch
import torch.nn.functional as F

MESSAGES = ("does not require grad and does not have a grad_fn",)
HINTS = ("argmax", "argmin", "multinomial", "accuracy")
WHY = """argmax, comparisons, sampling, and casts to integers give steps: no small change of a score changes them, so
they have no gradient. round() and sign() have one, which is zero."""
CURE = "A loss of the scores themselves, such as BCE with logits. Accuracy is only for printing."
RIGHT_RETURNS = [-0.25, 0.2]


def wrong():
    logits = torch.tensor([0.0, 1.3863], requires_grad=True)
    accuracy = (logits > 0.5).float().mean()
    (1 - accuracy).backward()
    return logits.grad


def right():
    logits = torch.tensor([0.0, 1.3863], requires_grad=True)  # 0.5 and 0.8
    F.binary_cross_entropy_with_logits(logits, torch.tensor([1.0, 0.4])).backward()
    return logits.grad
