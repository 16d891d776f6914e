"""The README's SNGAN and Trainer. Fakes for D are detached after G built a graph; G's pass fills D's gradients."""
# package: torch-mimicry==0.1.16
# expects: waste graph at "fake_images = netG.generate_images("
# expects: waste wasted at "log_data = self.netG.train_step("

import sys
import tempfile
from types import ModuleType

import torch

for name in ("datasets", "metrics"):  # they need PyTorch 1.8 and TensorFlow, and nothing here is loaded or measured
    sys.modules[f"torch_mimicry.{name}"] = ModuleType(name)

from torch_mimicry.nets import sngan
from torch_mimicry.training import Trainer

data = torch.utils.data.TensorDataset(torch.rand(32, 3, 32, 32) * 2 - 1, torch.zeros(32))
netG, netD = sngan.SNGANGenerator32(ngf=16), sngan.SNGANDiscriminator32(ndf=16)
optD = torch.optim.Adam(netD.parameters(), 2e-4, betas=(0.0, 0.9))
optG = torch.optim.Adam(netG.parameters(), 2e-4, betas=(0.0, 0.9))
trainer = Trainer(
    netD=netD,
    netG=netG,
    optD=optD,
    optG=optG,
    n_dis=5,
    num_steps=5,
    lr_decay="linear",
    dataloader=torch.utils.data.DataLoader(data, batch_size=4),
    log_dir=tempfile.mkdtemp(),
    device="cpu",
)
trainer.train()
