"""Its Trainer, as its command line calls it. G builds a graph for D's fakes; G's pass fills D's gradients."""
# package: stylegan2-pytorch==1.9.0
# expects: waste graph at "w_space = latent_to_w(S, style)"
# expects: waste graph at "generated_images = G(w_styles, noise)"
# expects: waste wasted at "backwards(gen_loss, self.GAN.G_opt, loss_id = 2)"

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

# It refuses to run without a GPU: what it calls for one does nothing on this machine.
torch.cuda.is_available = lambda: True
torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_: self

from stylegan2_pytorch import Trainer

torch.cuda.is_available = lambda: False
folder = Path(tempfile.mkdtemp())
(folder / "data").mkdir()
for n in range(8):
    pixels = np.random.default_rng(n).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "data" / f"{n}.png")

model = Trainer(
    *("default", folder / "results", folder / "models"),
    batch_size=4,
    gradient_accumulate_every=2,
    image_size=32,
    network_capacity=4,
    num_workers=0,
    aug_prob=0.1,
    world_size=1,
    rank="cpu",
)
model.evaluate = lambda *_, **__: None  # pictures: slow, and nothing is trained
model.set_data_src(str(folder / "data"))
while model.steps < 6:
    model.train()
