"""D's loss on fakes that are not detached also moves encoder and decoder, with an optimizer each, in one model."""
# expects: error mixed at "d_loss.backward()"
# expects: waste wasted at "g_loss.backward("
# networks: encoder, decoder, disc
# cure: "d_loss.backward()" -> "d_loss.backward(inputs=list(disc.parameters()))"
# cure: "g_loss.backward(" -> "g_loss.backward(inputs=[*encoder.parameters(), *decoder.parameters()], "
# trains: encoder, decoder, disc
# mistake: d-steps-on-g-loss

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

model = nn.ModuleDict({"encoder": nn.Linear(8, 4), "decoder": nn.Linear(4, 8), "disc": nn.Linear(8, 1)})
encoder, decoder, disc = model.values()
optimizers = [torch.optim.Adam(encoder.parameters()), torch.optim.Adam(decoder.parameters())]
optimizer_d = torch.optim.Adam(disc.parameters())
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    x = torch.rand(6, 8)
    made = decoder(encoder(x))
    g_loss = mse_loss(made, x) + 0.1 * binary_cross_entropy_with_logits(disc(made), ones)
    d_loss = binary_cross_entropy_with_logits(disc(x), ones) + binary_cross_entropy_with_logits(disc(made), zeros)
    for optimizer in optimizers:
        optimizer.zero_grad()
    g_loss.backward(retain_graph=True)
    optimizer_d.zero_grad()
    d_loss.backward()
    for optimizer in [*optimizers, optimizer_d]:
        optimizer.step()
