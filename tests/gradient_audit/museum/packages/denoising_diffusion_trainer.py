"""The README's Trainer on a folder of images: accumulation, clipping, and an average of the model."""
# package: denoising-diffusion-pytorch==2.3.4
# expects: nothing
# trains: 1

import tempfile
from pathlib import Path

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet
from torchvision.utils import save_image

folder = Path(tempfile.mkdtemp())
for number in range(100):
    save_image(torch.rand(3, 16, 16), folder / f"{number}.png")

model = Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
diffusion = GaussianDiffusion(model, image_size=16, timesteps=10)
trainer = Trainer(
    diffusion,
    folder,
    train_batch_size=8,
    train_lr=8e-5,
    train_num_steps=8,
    gradient_accumulate_every=2,
    ema_decay=0.995,
    calculate_fid=False,
    results_folder=tempfile.mkdtemp(),
)
trainer.train()
