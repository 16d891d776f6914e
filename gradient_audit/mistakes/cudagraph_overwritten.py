"""What a network compiled with CUDA graphs has computed is overwritten by its next run."""

MESSAGES = ("tensor output of CUDAGraphs that has been overwritten",)  # "accessing" it, or "accessing gradient"
NOT_RUN = "It needs a GPU. The messages are those of PyTorch's torch/_inductor/cudagraph_trees.py."
WHY = """mode="reduce-overhead" replays a recorded graph, whose outputs lie at fixed addresses: D's second logits
overwrite the first, and a second backward() that adds to .grad finds the first gradient gone."""
CURE = """One pass of D over both batches, clone() of the first output, or the default mode. For gradients, zero_grad()
before each backward(); or, to accumulate, .grad that an iteration without torch.compile allocated, zeroed in place."""
