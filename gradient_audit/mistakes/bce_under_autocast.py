"""BCELoss under autocast."""

MESSAGES = ("binary_cross_entropy and BCELoss are unsafe to autocast",)
NOT_RUN = "Only CUDA refuses this; the message is in PyTorch's aten/src/ATen/autocast_mode.h."
WHY = """The sigmoid before it is computed in float16, where a confident D gives exactly 0 or 1, and the logarithm
is infinite."""
CURE = "binary_cross_entropy_with_logits, and no sigmoid in D."
