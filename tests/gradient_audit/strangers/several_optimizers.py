"""An adversarial autoencoder: three networks, three optimizers, DataLoader workers, .item() everywhere."""

import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return torch.randn(4, generator=torch.Generator().manual_seed(index))


def build():
    encoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    decoder = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 4))
    critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    return encoder, decoder, critic


def train(loader):
    encoder, decoder, critic = build()
    enc_opt = torch.optim.Adam(encoder.parameters())
    dec_opt = torch.optim.Adam(decoder.parameters())
    critic_opt = torch.optim.SGD(critic.parameters(), lr=0.01)
    bce = nn.BCEWithLogitsLoss()
    for step, batch in enumerate(loader):
        enc_opt.zero_grad()
        dec_opt.zero_grad()
        reconstruction = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        reconstruction.backward()
        enc_opt.step()
        dec_opt.step()

        critic_opt.zero_grad()
        drawn, coded = critic(torch.randn(len(batch), 2)), critic(encoder(batch).detach())
        critic_loss = bce(drawn, torch.ones_like(drawn)) + bce(coded, torch.zeros_like(coded))
        critic_loss.backward()
        critic_opt.step()
        print(step, reconstruction.item(), critic_loss.item())


if __name__ == "__main__":
    context = sys.argv[1] if len(sys.argv) > 1 else None
    train(DataLoader(Points(), batch_size=8, num_workers=2, multiprocessing_context=context))
