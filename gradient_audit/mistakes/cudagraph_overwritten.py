"""A network compiled with CUDA graphs runs again before its first output is used."""

MESSAGES = ("accessing tensor output of CUDAGraphs that has been overwritten",)
NOT_RUN = "It needs a GPU. The message is that of PyTorch's torch/_inductor/cudagraph_trees.py."
WHY = """mode="reduce-overhead" replays a recorded graph, whose outputs lie at fixed addresses. D on the real and then
on the fake images writes the second logits over the first, and a later backward() or .item() finds them gone."""
CURE = """torch.compiler.cudagraph_mark_step_begin() before each iteration and one pass of D over both batches, or
clone() of the first output, or the default mode of torch.compile."""
