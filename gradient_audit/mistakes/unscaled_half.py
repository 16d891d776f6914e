"""GradScaler gets gradients in half precision."""

MESSAGES = ("Attempting to unscale FP16 gradients",)
NOT_RUN = "It is about the GPU's half precision."
WHY = "The weights are in FP16, as after network.half(): so are their gradients, which unscale_() refuses."
CURE = "Keep the weights in FP32, and run forward passes under torch.autocast; no half()."
