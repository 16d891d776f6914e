# /// script
# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]
# ///
"""GAN on one page: `gan_detach.py` in a single file. `uv run gan_standalone.py` installs what it needs.

x ── D ───────────────── d_loss
z ── G ─┬─ detach ── D ── d_loss     backward: through D, ends at detach; D steps
        └─ D ──────────── g_loss     backward: through D without its weights, then G; G steps
"""

import argparse
import io
import signal
import sys
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import torch
from PIL import Image, ImageOps  # torchvision brings it
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.tensorboard import SummaryWriter
from torchvision.datasets import MNIST
from torchvision.transforms.v2.functional import pil_to_tensor, resize
from torchvision.utils import save_image
from tqdm import tqdm

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}  # others are left out
DEVICE, Z_DIM, STYLE = "cuda" if torch.cuda.is_available() else "cpu", 64, 128  # lengths of the noise and its style
SIZES = {28: 2, 32: 2, 56: 3, 64: 3, 112: 4, 128: 4, 224: 5, 256: 5}  # pixels a side, and how often it is halved


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network. real: (N, C, S, S) in [-1, 1]. z: (N, z_dim). Returns detached 0-d tensors."""
    fake = generator(z)
    # D: max log D(x) + log(1 - D(G(z))). detach() ends this loss's graph at the fakes: G gets no gradient from it.
    real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
    d_loss = -(nn.functional.logsigmoid(real_logits).mean() + nn.functional.logsigmoid(-fake_logits).mean()) / 2
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    # G: max log D(G(z)), by the updated D. `inputs` limits the gradients to G's weights: D's are of no use.
    g_loss = -nn.functional.logsigmoid(discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
    optimizer_g.step()
    probabilities = {"d_real": real_logits.detach().sigmoid().mean(), "d_fake": fake_logits.detach().sigmoid().mean()}
    return {"d_loss": d_loss.detach(), "g_loss": g_loss.detach(), **probabilities}


class Normalised(nn.Module):
    """Gives a weight, as a matrix, singular values with a root mean square of 1: it bounds D's slope."""

    def forward(self, weight):
        return weight * (min(len(weight), weight[0].numel()) ** 0.5 / torch.linalg.vector_norm(weight))


def styled(channels, numbers):
    """Return group normalisation of each sample, and what makes of the style the numbers that change its result."""
    layer = nn.GroupNorm(channels // 8, channels, affine=False)
    layer.change = nn.Linear(STYLE, numbers)  # a shift of each channel; of twice as many, a scale comes first
    return layer


class Generator(nn.Sequential):
    """Its first layer maps the noise to a style: the second takes it, and each `styled` layer takes it again."""

    def forward(self, z):
        """Return images (N, C, S, S) in [-1, 1], given noise (N, Z_DIM)."""
        features = style = nn.functional.layer_norm(self[0](z), [STYLE]).tanh()
        for layer in [*self][1:]:
            features = layer(features)
            if hasattr(layer, "change"):
                *scale, shift = layer.change(style)[..., None, None].split(layer.num_channels, dim=1)
                features = torch.addcmul(shift, features, 1 + scale[0]) if scale else features + shift
        return features


def make_pair(channels, size):
    """Return G, noise (N, Z_DIM) to images (N, C, S, S) in [-1, 1], and D, images to logits (N, 1)."""
    widths = [16, 32, 64, 128, 128][: SIZES[size]]  # channels at S/2, S/4, ... pixels
    down = [nn.PixelUnshuffle(2)]  # squares of 2x2 pixels become channels: (4 C, S/2, S/2)
    for narrow, wide in pairwise([4 * channels, *(2 * wide for wide in widths)]):  # (32, S/4, S/4), ..., (wide, 4, 4)
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(wide * 16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)]
    for layer in [layer for layer in down if hasattr(layer, "weight")]:
        nn.utils.parametrize.register_parametrization(layer, "weight", Normalised())
    last, side = widths[-1] * 3 // 2, size >> len(widths)  # channels and pixels a side where G begins: 7 or 8 pixels
    mapping = nn.Linear(Z_DIM, STYLE, bias=False)
    nn.init.orthogonal_(mapping.weight, gain=3.5)
    up = [nn.Linear(STYLE, last * side**2), nn.Unflatten(1, (-1, side, side)), nn.GroupNorm(last // 8, last), nn.ReLU()]
    if channels == 1 and size <= 32:  # small and grey: made as squares of 2x2 pixels, first as channels
        up += [nn.ConvTranspose2d(48, 16, 4, stride=2, padding=1), styled(16, 16), nn.ReLU()]  # (16, S/2, S/2)
        up += [nn.Conv2d(16, 4, 3, padding=1), nn.PixelShuffle(2), nn.Tanh()]  # (4, S/2, S/2), then (1, S, S)
    else:
        for wide, narrow in pairwise([last, *reversed(widths[:-1]), 8]):  # ..., (16, S/2, S/2), (8, S, S)
            up += [nn.Conv2d(wide, narrow, 1), nn.Upsample(scale_factor=2, mode="bilinear")]
            up += [nn.Conv2d(narrow, narrow, 3, padding=1), styled(narrow, 2 * narrow), nn.ReLU()]
        up += [nn.Conv2d(8, channels, 3, padding=1), nn.Tanh()]  # (C, S, S)
    return Generator(mapping, *up), nn.Sequential(*down)


def load_images(dataset, size):
    """Return MNIST, or a folder's images, none hidden or in linked or unreadable folders, as uint8 (N, C, S, S)."""
    images, path, folder = [], repr(dataset), Path(dataset or "?")  # Path("") is the current folder
    try:
        if dataset == "mnist":
            return resize(MNIST("data", download=True).data[:, None], [size or 28, size or 28])
        if Path("runs").resolve().is_relative_to(folder.resolve()):
            raise ValueError("it would get the samples of ./runs; start elsewhere")
        files = [p for p in folder.rglob("*") if "/." not in f"/{p.relative_to(folder).as_posix()}" and p.is_file()]
        for path in sorted(path for path in files if path.suffix.lower() in SUFFIXES):
            if (image := ImageOps.exif_transpose(Image.open(path))).mode[0] in "IF":  # they would all be white
                raise ValueError("it has more than 8 bits a channel")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
            images.append(pil_to_tensor(ImageOps.fit(image.convert("RGB"), (size or 64, size or 64))))
        print(f"{folder}: {len(images)} images; other files, left out: {len(files) - len(images)}")
        return torch.stack(images)
    except Exception as error:  # files fail in many ways
        sys.exit(f"error: {path}: cannot be read or downloaded; name mnist or a folder of images ({error!r})")


def main():
    """Train both networks; Ctrl-C ends the run after a step, saved."""
    sys.stderr = sys.stderr or io.StringIO()  # it is None if it is closed
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description="GAN on one page.")  # errors in one line
    parser.add_argument("--dataset", default="mnist", help="mnist, downloaded into data/, or a folder of images")
    parser.add_argument("--image-size", type=int, choices=[*SIZES], help="default: 28, 64 for a folder")
    parser.add_argument("--batch-size", type=int, default=64, help="images per step")
    parser.add_argument("--steps", type=int, default=2000, help="steps to train, each one update of both networks")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the noise, the choice of images")
    parser.add_argument("--sample-every", type=int, default=250, help="steps from one sample grid and checkpoint on")
    options = parser.parse_args(sys.argv[1:] if "__file__" in globals() else [])  # of a notebook: write yours into []
    if min(options.batch_size, options.steps, options.sample_every, options.seed + 1, 2**32 - options.seed) < 1:
        parser.error("--batch-size, --steps and --sample-every: from 1 on; --seed: from 0 on, below 2**32")
    images = load_images(options.dataset, options.image_size).to(DEVICE)
    options.dataset = options.dataset if options.dataset == "mnist" else str(Path(options.dataset).absolute())
    torch.manual_seed(options.seed)
    generator, discriminator = (n.to(DEVICE, memory_format=torch.channels_last) for n in make_pair(*images.shape[1:3]))
    lr_g, lr_d = (5e-3, 5e-3) if images.shape[-1] <= 32 else (2e-3, 3e-3)  # they fall in the second half
    optimizer_g, optimizer_d = (torch.optim.Adam(n.parameters(), betas=(0.0, 0.9)) for n in (generator, discriminator))
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(0.995)).requires_grad_(False)
    sample_z = torch.randn(64, Z_DIM).to(DEVICE)
    state = {"generator": generator, "discriminator": discriminator, "average": average}
    state |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    facts = {"script": "gan_standalone", "data_shapes": [[*images.shape]], "options": vars(options) | {"z_dim": Z_DIM}}
    folder, interrupts = Path("runs", "gan_standalone", f"{datetime.now():%Y%m%d-%H%M%S-%f}"), []
    (folder / "samples").mkdir(parents=True)
    before = signal.signal(signal.SIGINT, lambda *_: interrupts.append(signal.signal(signal.SIGINT, before)))
    with SummaryWriter(folder) as board:
        for step in tqdm(range(1, options.steps + 1), str(folder), mininterval=0.1 if sys.stderr.isatty() else 10):
            decay = min(1.0, (options.steps - step + 1) / (options.steps - options.steps // 2))
            optimizer_g.param_groups[0]["lr"], optimizer_d.param_groups[0]["lr"] = lr_g * decay, lr_d * decay
            rows = torch.randint(len(images), (options.batch_size,)).to(DEVICE)
            z = torch.randn(options.batch_size, Z_DIM).to(DEVICE)
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, images[rows] / 127.5 - 1, z)
            average.update_parameters(generator)
            last = interrupts or step == options.steps
            for name, value in results.items() if step % 50 == 0 or last else ():
                board.add_scalar(name, value, step)
            if step % options.sample_every == 0 or last:
                if not all(p.isfinite().all() for p in [*average.parameters(), *discriminator.parameters()]):
                    sys.exit(f"error: step {step}: the weights are not finite; {folder} stays as saved before")
                save_image(average(sample_z) / 2 + 0.5, folder / "samples" / f"step-{step:06d}.png")
                states = facts | {name: part.state_dict() for name, part in state.items()} | {"layers": str(generator)}
                torch.save(states | {"step": step, "averages": {"generator": "average"}}, content := io.BytesIO())
                (folder / ".checkpoint.pt").write_bytes(content.getvalue())
                (folder / ".checkpoint.pt").replace(folder / "checkpoint.pt")  # whole, or not at all
            if last and interrupts:
                sys.exit(130)
    signal.signal(signal.SIGINT, before)  # a notebook goes on with it


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"error: ./runs cannot be written ({error})")
