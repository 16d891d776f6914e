"""G's loss goes through its average, which G is copied to, so that no gradient comes to G."""
# expects: error ownerless at "average = "
# expects: waste wasted at "g_loss.backward()"
# says: If the loss is for what they are a copy of, call that in its place
# cure: "discriminator(average(" -> "discriminator(generator("
# cure: "g_loss.backward()\n" -> "g_loss.backward(inputs=list(generator.parameters()))\n"

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.optim.swa_utils import AveragedModel

generator, discriminator = nn.Linear(4, 8), nn.Linear(8, 1)
average = AveragedModel(generator)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(6):
    with torch.no_grad():
        fake = generator(torch.randn(8, 4))
    optimizer_d.zero_grad()
    d_loss = softplus(-discriminator(torch.randn(8, 8))).mean() + softplus(discriminator(fake)).mean()
    d_loss.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss = softplus(-discriminator(average(torch.randn(8, 4)))).mean()
    g_loss.backward()
    optimizer_g.step()
    average.update_parameters(generator)
