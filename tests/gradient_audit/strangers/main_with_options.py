"""A main() with argparse: two critic passes accumulate, five critic steps for one of G, weights clipped."""

import argparse

import torch
from torch import nn, optim


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--n-critic", type=int, default=5)
    args = parser.parse_args()

    netG = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    netD = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    optD = optim.RMSprop(netD.parameters(), lr=5e-5)
    optG = optim.RMSprop(netG.parameters(), lr=5e-5)

    for i in range(1, args.iterations + 1):
        for p in netD.parameters():
            p.requires_grad = True
        netD.zero_grad()
        netD(torch.randn(8, 4)).mean().backward()
        netD(netG(torch.randn(8, 8)).detach()).mean().mul(-1).backward()
        optD.step()
        for p in netD.parameters():
            p.data.clamp_(-0.01, 0.01)

        if i % args.n_critic == 0:
            for p in netD.parameters():
                p.requires_grad = False
            netG.zero_grad()
            netD(netG(torch.randn(8, 8))).mean().backward()
            optG.step()


if __name__ == "__main__":
    main()
