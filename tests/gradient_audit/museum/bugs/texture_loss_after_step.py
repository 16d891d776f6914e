"""The adversarial loss goes backward after the step that should use it, and zero_grad() clears what it has left.

https://github.com/MyeongJin-Kim/Learning-Texture-Invariant-Representation/issues/11
"""
# expects: waste wasted at "loss_adv.backward("
# cure: "loss_seg.backward()\n    optimizer.step()\n" -> "loss_seg.backward()\n"
# cure: "    optimizer_D.zero" -> "    optimizer.step()\n\n    optimizer_D.zero"

import torch
from torch import nn

model, model_D = nn.Linear(4, 3), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=2.5e-4)
optimizer_D = torch.optim.Adam(model_D.parameters(), lr=1e-4)
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    source, labels, target = torch.randn(3, 4), torch.randint(3, (3,)), torch.randn(3, 4)
    optimizer.zero_grad()
    loss_seg = nn.functional.cross_entropy(model(source), labels)
    loss_seg.backward()
    optimizer.step()

    loss_adv = 0.001 * bce(model_D(model(target).softmax(1)), torch.zeros(3, 1))
    loss_adv.backward(inputs=list(model.parameters()))

    optimizer_D.zero_grad()
    with torch.no_grad():
        maps = torch.cat((model(source), model(target))).softmax(1)
    loss_D = bce(model_D(maps), torch.cat((torch.zeros(3, 1), torch.ones(3, 1))))
    loss_D.backward()
    optimizer_D.step()
