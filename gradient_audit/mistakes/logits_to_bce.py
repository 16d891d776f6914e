"""BCELoss on logits, or on NaN."""

import torch
import torch.nn.functional as F

MESSAGES = (
    "all elements of input should be between 0 and 1",
    "all elements of target should be between 0 and 1",
    "Assertion `input >= 0. && input <= 1.` failed",
    "Assertion `input_val >= zero && input_val <= one` failed",
    "Assertion `target_val >= zero && target_val <= one` failed",
)
WHY = """BCELoss takes probabilities; a D without a sigmoid gives logits. NaN is not between 0 and 1 either: behind a
sigmoid, look for the step at which D's weights became NaN. Labels must lie in the range, too."""
CURE = "binary_cross_entropy_with_logits, and no sigmoid."
RIGHT_RETURNS = 1.41


def wrong():
    logits, real = torch.tensor([0.0, -2.0]), torch.ones(2)
    return F.binary_cross_entropy(logits, real)


def right():
    logits, real = torch.tensor([0.0, -2.0]), torch.ones(2)
    return F.binary_cross_entropy_with_logits(logits, real)
