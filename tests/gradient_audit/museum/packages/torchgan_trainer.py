"""DCGAN by its Trainer. Fakes for D are detached after G built a graph; G's pass fills D's gradients."""
# package: torchgan==0.1.0
# expects: waste graph at "fake = generator(noise)"
# expects: waste wasted at "cur_loss = loss.train_ops("

import os
import tempfile

import torch
import torchvision
from torch.optim import Adam

make_grid = torchvision.utils.make_grid  # its option `range` is gone
torchvision.utils.make_grid = lambda images, *_, **__: make_grid(images)

from torchgan.losses import MinimaxDiscriminatorLoss, MinimaxGeneratorLoss
from torchgan.models import DCGANDiscriminator, DCGANGenerator
from torchgan.trainer import Trainer

os.chdir(tempfile.mkdtemp())
optimizer = {"name": Adam, "args": {"lr": 0.0001, "betas": (0.5, 0.999)}}
sizes = {"out_channels": 1, "step_channels": 8, "out_size": 32}
network = {
    "generator": {"name": DCGANGenerator, "args": {"encoding_dims": 8, **sizes}, "optimizer": optimizer},
    "discriminator": {
        "name": DCGANDiscriminator,
        "args": {"in_channels": 1, "step_channels": 8, "in_size": 32},
        "optimizer": optimizer,
    },
}
data = torch.utils.data.TensorDataset(torch.randn(32, 1, 32, 32), torch.zeros(32))
losses = [MinimaxGeneratorLoss(), MinimaxDiscriminatorLoss()]
trainer = Trainer(network, losses, sample_size=4, epochs=2, device=torch.device("cpu"))
trainer(torch.utils.data.DataLoader(data, batch_size=4))
