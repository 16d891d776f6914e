"""DDP: two forward passes of a BatchNorm, one backward()."""

MESSAGES = ("variables needed for gradient computation", "modified by an inplace operation")
HINTS = ("DistributedDataParallel", "broadcast_buffers")
NOT_RUN = """It depends on the version: on the CPU PyTorch 2.6.0 raises it, also with one process, and 2.15.0 does
not; for CUDA see https://github.com/pytorch/pytorch/issues/175024 and .../issues/22095."""
WHY = """Before each forward pass DDP copies the buffers of process 0 into all, in place, and so changes those that
the previous pass saved: D on real images, then D on fakes, then one backward(). The message names a tensor with one
dimension, a running mean or variance, which no operation made."""
CURE = """broadcast_buffers=False, or a norm without running statistics, as GroupNorm. One pass over
torch.cat((real, fake)) raises nothing, either, but batch normalisation then takes its mean over both: what D says of a
real image depends on the fakes beside it, and G's pass, over fakes alone, meets another D."""
