"""The GAN of its page on manual optimization. G's pass fills D's gradients, which D clears."""
# package: lightning==2.6.6
# expects: waste wasted at "self.manual_backward(errG)"

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SimpleGAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.D = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.criterion = nn.BCEWithLogitsLoss()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        (X,) = batch
        real_label = torch.ones((len(X), 1), device=self.device)
        fake_label = torch.zeros((len(X), 1), device=self.device)
        g_X = self.G(torch.randn(len(X), 4))

        d_x = self.D(X)
        errD_real = self.criterion(d_x, real_label)
        d_z = self.D(g_X.detach())
        errD_fake = self.criterion(d_z, fake_label)
        errD = errD_real + errD_fake
        d_opt.zero_grad()
        self.manual_backward(errD)
        d_opt.step()

        d_z = self.D(g_X)
        errG = self.criterion(d_z, real_label)
        g_opt.zero_grad()
        self.manual_backward(errG)
        g_opt.step()
        self.log_dict({"g_loss": errG, "d_loss": errD}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.G.parameters(), lr=1e-5), torch.optim.Adam(self.D.parameters(), lr=1e-5)


trainer = L.Trainer(max_epochs=5, logger=False, enable_checkpointing=False, accelerator="cpu")
trainer.fit(SimpleGAN(), DataLoader(TensorDataset(torch.randn(32, 8)), 8))
