"""Manual optimization in Lightning's documented style: optimizers in disguise, toggled, backward by the trainer."""
# expects: nothing

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "site-packages"))
from trainer_library import LightningModule, Trainer


class GAN(LightningModule):
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = nn.Linear(3, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_number):
        g_opt, d_opt = self.optimizers()
        self.toggle_optimizer(d_opt)
        fake = self.generator(torch.randn(5, 3)).detach()
        d_loss = self.discriminator(fake).mean() - self.discriminator(batch).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        self.untoggle_optimizer(d_opt)

        self.toggle_optimizer(g_opt)
        g_loss = -self.discriminator(self.generator(torch.randn(5, 3))).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        self.untoggle_optimizer(g_opt)

    def configure_optimizers(self):
        return [torch.optim.Adam(network.parameters()) for network in (self.generator, self.discriminator)]


Trainer(max_steps=8).fit(GAN(), (torch.randn(5, 4) for _ in range(100)))
