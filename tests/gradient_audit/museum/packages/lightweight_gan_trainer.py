"""Its Trainer, as its command line calls it. G's pass fills D's gradients, which D clears."""
# package: lightweight-gan==1.2.1
# expects: waste wasted at "self.G_scaler.scale(gen_loss).backward()"

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

# It refuses to run without a GPU: what it calls for one does nothing on this machine.
torch.cuda.is_available = lambda: True
torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_: self
torch.zeros = lambda *size, make=torch.zeros, **options: make(*size, **{**options, "device": None})

from lightweight_gan import Trainer

torch.cuda.is_available = lambda: False
folder = Path(tempfile.mkdtemp())
(folder / "data").mkdir()
for n in range(8):
    pixels = np.random.default_rng(n).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "data" / f"{n}.png")

model = Trainer(
    *("default", folder / "results", folder / "models"),
    batch_size=2,
    gradient_accumulate_every=1,
    attn_res_layers=[32],
    image_size=32,
    num_workers=0,
    aug_prob=0.1,
    fmap_max=16,
    latent_dim=16,
    world_size=1,
    use_aim=False,
)
model.evaluate = lambda *_, **__: None  # pictures: slow, and nothing is trained
model.set_data_src(str(folder / "data"))
while model.steps < 5:
    model.train()
