"""A step by way of a moment, on lists of tensors, as Keras takes it: foreach_add writes to both."""
# expects: nothing
# says: | used

import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
params = list(model.parameters())
moments = [torch.zeros_like(p) for p in params]
for _ in range(5):
    model.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    with torch.no_grad():
        torch._foreach_mul_(moments, 0.9)
        torch._foreach_add_(moments, [p.grad for p in params])
        torch._foreach_add_(params, moments, alpha=-0.1)
