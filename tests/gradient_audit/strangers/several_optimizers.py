"""An adversarial autoencoder: three networks, three optimizers, the workers of a DataLoader."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader


def train(loader):
    encoder, decoder, critic = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(2, 1)
    enc_opt, dec_opt, critic_opt = (torch.optim.Adam(net.parameters()) for net in (encoder, decoder, critic))
    for batch in loader:
        enc_opt.zero_grad()
        dec_opt.zero_grad()
        reconstruction = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        reconstruction.backward()
        enc_opt.step()
        dec_opt.step()

        critic_opt.zero_grad()
        critic_loss = critic(encoder(batch).detach()).mean() - critic(torch.randn(8, 2)).mean()
        critic_loss.backward()
        critic_opt.step()


if __name__ == "__main__":
    train(DataLoader(list(torch.randn(400, 4)), 8, num_workers=2, multiprocessing_context=sys.argv[1]))
