"""The optimizer of CLIP gets both encoders, and not the learned scale of the logits beside them."""
# expects: error ownerless at "model = Clip()"
# cure: "[{'params': model.image.parameters()}, {'params': model.text.parameters()}]" -> "model.parameters()"

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim import AdamW


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(8, 4), nn.Linear(6, 4)
        self.logit_scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, images, texts):
        return self.logit_scale.exp() * normalize(self.image(images)) @ normalize(self.text(texts)).t()


model = Clip()
optimizer = AdamW([{'params': model.image.parameters()}, {'params': model.text.parameters()}])  # fmt: skip
for _ in range(20):
    logits, pairs = model(torch.randn(8, 8), torch.randn(8, 6)), torch.arange(8)
    optimizer.zero_grad()
    (cross_entropy(logits, pairs) + cross_entropy(logits.t(), pairs)).backward()
    optimizer.step()
