"""GANLearner.wgan, as its page uses it: G and D are frozen in turn, and one optimizer holds both."""
# package: fastai==2.8.12
# expects: nothing
# trains: 2

import torch
from fastai.data.core import DataLoaders
from fastai.optimizer import RMSProp
from fastai.vision.gan import GANLearner
from torch import nn

dataset = [(torch.randn(4), torch.randn(8)) for _ in range(128)]
loaders = DataLoaders.from_dsets(dataset, dataset[:16], bs=8, num_workers=0, device="cpu")
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
learn = GANLearner.wgan(loaders, generator, critic, opt_func=RMSProp, switch_eval=False)
with learn.no_bar(), learn.no_logging():
    learn.fit(2, 2e-4, wd=0.0)
