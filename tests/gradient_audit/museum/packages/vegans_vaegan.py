"""VAEGAN: the layers for mean and variance are made after the optimizers, and none holds them."""
# package: vegans==0.4.0
# expects: error ownerless at "self._losses[who].backward(retain_graph=True)"
# expects: error ownerless at "self._losses[who].backward(retain_graph=True)"
# expects: waste wasted at "self._losses[who].backward(retain_graph=True)"
# expects: waste graph at "self.encode(x=X_batch)"
# bug: mean and variance are never trained

import torch
from torch import nn
from torch.utils.data.dataloader import _BaseDataLoaderIter

_BaseDataLoaderIter.next = _BaseDataLoaderIter.__next__  # as in PyTorch 1.8, for which it was written

from vegans.GAN import VAEGAN

generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
gan = VAEGAN(generator, discriminator, encoder, x_dim=8, z_dim=4, folder=None)
gan.fit(torch.randn(64, 8).numpy(), epochs=3, batch_size=8, enable_tensorboard=False)
