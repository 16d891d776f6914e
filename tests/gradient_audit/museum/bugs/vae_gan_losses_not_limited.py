"""VAE-GAN: the losses of decoder and D also move what comes before them; nothing clears that before the steps.

https://github.com/clementchadebec/benchmark_VAE: pythae 0.1.2, VAEGAN and CoupledOptimizerAdversarialTrainer
"""
# expects: error mixed at "d_loss.backward()"
# expects: error mixed at "decoder_loss.backward("
# expects: waste wasted at "encoder_loss.backward("
# expects: waste wasted at "decoder_loss.backward("
# says: also wrote gradients into encoder and decoder
# cure: "d_loss.backward()" -> "d_loss.backward(inputs=list(disc.parameters()))"
# cure: "decoder_loss.backward(" -> "decoder_loss.backward(inputs=list(decoder.parameters()), "
# cure: "encoder_loss.backward(" -> "encoder_loss.backward(inputs=list(encoder.parameters()), "
# trains: encoder, decoder, disc

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

encoder, decoder, disc = nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(8, 1)
optimizers = [torch.optim.Adam(network.parameters()) for network in (encoder, decoder, disc)]
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    x = torch.rand(6, 8)
    recon = decoder(encoder(x))
    encoder_loss = mse_loss(recon, x)
    d_loss = binary_cross_entropy_with_logits(disc(x), ones) + binary_cross_entropy_with_logits(disc(recon), zeros)
    decoder_loss = mse_loss(recon, x) - 0.1 * d_loss
    optimizers[0].zero_grad()
    encoder_loss.backward(retain_graph=True)
    optimizers[1].zero_grad()
    decoder_loss.backward(retain_graph=True)
    optimizers[2].zero_grad()
    d_loss.backward()
    for optimizer in optimizers:
        optimizer.step()
