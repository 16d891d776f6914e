"""FSDP wraps frozen and trained parameters together."""

MESSAGES = ("requires uniform `requires_grad`", "tensors with uniform `requires_grad`")
NOT_RUN = "It needs a process group. The message is that of PyTorch's torch/distributed/fsdp/_flat_param.py."
WHY = """FSDP keeps the parameters of a wrapped module in one flat tensor, which requires a gradient as a whole or not
at all: a part of it, as for LoRA or a frozen encoder in the generator, cannot be frozen."""
CURE = "use_orig_params=True, an auto_wrap_policy that wraps frozen modules apart, or fully_shard."
