"""A Learner with GradientClip; fastai's optimizers are not PyTorch's."""
# package: fastai==2.8.12
# expects: nothing
# trains: 1

import torch
from fastai.callback.schedule import Learner
from fastai.callback.training import GradientClip
from fastai.data.core import DataLoaders
from fastai.metrics import accuracy
from torch import nn
from torch.nn import functional as F

dataset = [(torch.randn(8), torch.tensor(n % 2)) for n in range(64)]
loaders = DataLoaders.from_dsets(dataset, dataset[:16], bs=8, num_workers=0, device="cpu")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
learn = Learner(loaders, model, loss_func=F.cross_entropy, metrics=accuracy, cbs=GradientClip(1.0))
with learn.no_bar():
    learn.fit_one_cycle(2)
