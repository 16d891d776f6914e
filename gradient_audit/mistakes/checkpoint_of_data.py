"""A reentrant checkpoint of what needs no gradient."""

MESSAGES = ("None of the inputs have requires_grad=True",)
NOT_RUN = "PyTorch only warns; the audit names the line, as `unreached`."
WHY = "The reentrant checkpoint gives no gradient to the weights inside of it unless one of its inputs needs one."
CURE = "checkpoint(..., use_reentrant=False)."
