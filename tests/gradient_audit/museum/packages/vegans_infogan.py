"""InfoGAN: the heads of its encoder are made after the optimizers, and none holds them."""
# package: vegans==0.4.0
# expects: error ownerless at "self._losses[who].backward(retain_graph=True)"
# expects: waste wasted at "self._losses[who].backward(retain_graph=True)"
# expects: waste graph at "fake_images = self.generate(z=Z_batch, c=c).detach()"
# bug: the heads are never trained

import torch
from torch import nn
from torch.utils.data.dataloader import _BaseDataLoaderIter

_BaseDataLoaderIter.next = _BaseDataLoaderIter.__next__  # as in PyTorch 1.8, for which it was written

from vegans.GAN import InfoGAN

generator = nn.Sequential(nn.Linear(4 + 5, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
gan = InfoGAN(generator, discriminator, encoder, x_dim=8, z_dim=4, c_dim_discrete=[3], c_dim_continuous=2, folder=None)
gan.fit(torch.randn(64, 8).numpy(), epochs=3, batch_size=8, enable_tensorboard=False)
