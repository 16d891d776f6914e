"""The README's unsupervised example, with networks of its own and the loader's place taken by random numbers."""
# package: vegans==0.4.0
# expects: waste wasted at "self._losses[who].backward(retain_graph=True)"
# expects: waste graph at "fake_images = self.generate(z=Z_batch).detach()"

import torch
from torch import nn
from torch.utils.data.dataloader import _BaseDataLoaderIter

_BaseDataLoaderIter.next = _BaseDataLoaderIter.__next__  # as in PyTorch 1.8, for which it was written

from vegans.GAN import VanillaGAN

generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
gan = VanillaGAN(generator=generator, adversary=discriminator, z_dim=4, x_dim=8, folder=None)
gan.fit(torch.randn(64, 8).numpy(), epochs=3, batch_size=8, enable_tensorboard=False)
