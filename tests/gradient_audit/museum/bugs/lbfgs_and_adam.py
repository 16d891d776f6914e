"""G by LBFGS, D by Adam: a term of D's loss is cut off. LBFGS alone makes more passes a step than are watched."""
# expects: question dead at "d_loss = scores.mean() + dis"
# expects: waste wasted at "loss.backward()  # to both"
# cure: "scores.detach().square()" -> "scores.square()"
# cure: "loss.backward()  # to both" -> "loss.backward(inputs=list(generator.parameters()))"
# cure: "    scores =" -> "    with torch.no_grad():\n        fake = generator(z)\n    scores ="
# cure: "generator(z).detach()" -> "fake"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.LBFGS(generator.parameters(), lr=0.01)
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    z = torch.randn(4, 3)

    def closure():
        loss = discriminator(generator(z)).square().mean()
        optimizer_g.zero_grad()
        loss.backward()  # to both
        return loss

    optimizer_g.step(closure)
    scores = discriminator(torch.randn(4, 2))
    d_loss = scores.mean() + discriminator(generator(z).detach()).square().mean() + scores.detach().square().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
