# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]
# ///
"""GAN on one page: `gan_detach.py` in a single file that needs torch, torchvision, tensorboard and tqdm alone.

    x ── D ───────────────── d_loss
    z ── G ─┬─ detach ── D ── d_loss     backward: through D, ends at detach; D steps
            └─ D ──────────── g_loss     backward: through D without its weights, then G; G steps

`--dataset folder/of/images` trains on images of yours, `--resume runs/gan_standalone/<date-time>` continues a run.
`uv run gan_standalone.py` installs what it needs in an environment of its own. A notebook's cell runs it as it is.
"""

import argparse
import os
import signal
import sys
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import torch
from PIL import Image, ImageOps  # torchvision brings it
from torch import nn
from torch.nn.functional import logsigmoid
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.tensorboard import SummaryWriter
from torchvision.datasets import MNIST
from torchvision.datasets.folder import IMG_EXTENSIONS
from torchvision.transforms.v2.functional import pil_to_tensor, resize
from torchvision.utils import make_grid, save_image
from tqdm import tqdm

ARGUMENTS = sys.argv[1:] if "__file__" in globals() else []  # a notebook's are its own: write yours into the list
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Z_DIM = 8  # length of the noise vector; more for data with more variety
LR_G, LR_D, BETAS = 2e-3, 2e-3 / 3, (0.0, 0.999)  # of Adam
EMA = 0.995  # decay per step of the averaged G that samples are from


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network. real: (N, C, S, S) in [-1, 1]. z: (N, z_dim). Returns detached 0-d tensors."""
    fake = generator(z)

    # D: max log D(x) + log(1 - D(G(z))). detach() ends this loss's graph at the fakes: G gets no gradient from it.
    real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
    d_loss = -(logsigmoid(real_logits).mean() + logsigmoid(-fake_logits).mean()) / 2
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    # G: max log D(G(z)), by the updated D. `inputs` limits the gradients to G's weights: D's are of no use.
    g_loss = -logsigmoid(discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
    optimizer_g.step()
    probabilities = {"d_real": real_logits.detach().sigmoid().mean(), "d_fake": fake_logits.detach().sigmoid().mean()}
    return {"d_loss": d_loss.detach(), "g_loss": g_loss.detach(), **probabilities}


class Residual(nn.Sequential):
    """Layers whose output is added to their input."""

    def forward(self, features):
        """Return the features plus what the layers make of them."""
        return features + super().forward(features)


def networks(image_shape, z_dim, width=16):
    """Return G, noise (N, z_dim) to images (N, C, S, S) in [-1, 1], and D, images to logits (N, 1)."""
    channels, _, side = image_shape
    widths = []  # channels at S/2, S/4, ... pixels
    while side > 8:
        widths.append(min(width << len(widths), 8 * width))
        side //= 2
    half, last = widths[-1] // 2, widths[-1] * 3 // 2

    down = [nn.PixelUnshuffle(2), nn.Conv2d(4 * channels, widths[0], 3, padding=1), nn.LeakyReLU(0.2)]  # S/2 pixels
    for narrow, wide in pairwise([*widths, last]):  # half the size each time, (last, 4, 4) in the end
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(last * 16, 256), nn.LayerNorm(256), nn.LeakyReLU(0.2), nn.Linear(256, 1)]

    up = [nn.Hardtanh(-0.15, 0.15), nn.Linear(z_dim, 128, bias=False)]
    nn.init.orthogonal_(up[1].weight, gain=17)  # each noise value has its own effect; large, so it learns slowly
    up += [nn.LayerNorm(128, elementwise_affine=False), nn.Tanh()]  # (128)
    up += [nn.Linear(128, last * side**2, bias=False), nn.Unflatten(1, (last, side, side))]  # (last, 7, 7) or 8x8
    up += [nn.GroupNorm(last // 16, last), nn.Tanh()]  # each sample by itself, unlike batch normalisation
    block = [nn.Conv2d(last, half, 3, 1, 1), nn.GroupNorm(half // 16, half), nn.Tanh(), nn.Conv2d(half, last, 3, 1, 1)]
    up += [Residual(*block)]
    for wide, narrow in pairwise([last, *reversed(widths[:-1]), channels]):  # twice the size, (C, S, S) in the end
        up += [nn.GroupNorm(wide // 16, wide), nn.Tanh(), nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1)]
    up += [nn.Hardtanh()]
    return tuple(nn.Sequential(*layers).to(memory_format=torch.channels_last) for layers in (up, down))


def load_images(dataset, size):
    """Return the images of MNIST, or all below a folder in RGB, as uint8 (N, C, S, S)."""
    if dataset == "mnist":
        with refusing("--dataset mnist: cannot be downloaded into data/, or read from there"):
            images = MNIST("data", download=True).data[:, None]
        return resize(images, [size or 28, size or 28])
    paths = sorted(path for path in Path(dataset).rglob("[!.]*") if path.suffix.lower() in IMG_EXTENSIONS)
    if not paths:
        refuse(f"--dataset {dataset}: neither mnist nor a folder with images")
    return torch.stack([read_image(path, size or 64) for path in paths])


def read_image(path, size):
    """Return an image file as uint8 (3, size, size), cropped to a square, on white if it is transparent."""
    with refusing(f"{path}: cannot be read as an image of 8 bits a channel"), Image.open(path) as image:
        if image.mode[0] in "IF":  # convert("RGB") would make all above 255 white
            raise ValueError("it has more")
        if image.has_transparency_data:
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
        return pil_to_tensor(ImageOps.fit(image.convert("RGB"), (size, size)))


def refuse(message, status=2):
    """End the process with one line on stderr."""
    print("error:", *str(message).split(), file=sys.stderr)
    sys.exit(status)


@contextmanager
def refusing(subject, status=2):
    """Refuse what fails inside, whatever it raises: files fail in many ways."""
    try:
        yield
    except Exception as error:
        refuse(f"{subject} ({error})", status)


def parse():
    """Return the options, and the checkpoint of the run to go on with, whose options are the defaults then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = refuse  # one line, without the usage
    add = parser.add_argument
    add("--dataset", default="mnist", help="mnist, downloaded into data/, or a folder of images")
    add("--image-size", type=int, choices=[28, 32, 56, 64, 112, 128, 224, 256], help="default: 28, 64 for a folder")
    add("--batch-size", type=int, default=48, help="images per step")
    add("--steps", type=int, default=1550, help="steps to train, each one update of both networks")
    add("--seed", type=int, default=0, help="fixes the initial weights, the noise and the choice of images")
    add("--sample-every", type=int, default=250, help="steps between two sample grids, each with a checkpoint")
    add("--resume", type=Path, help="folder of a run to go on with, by its own options where none are given")
    options, checkpoint = parser.parse_args(ARGUMENTS), None
    if options.resume:
        with refusing(f"--resume {options.resume}: holds no checkpoint of this script"):
            checkpoint = torch.load(options.resume / "checkpoint.pt", map_location="cpu", weights_only=True)
            parser.set_defaults(**{name: value for name, value in checkpoint["options"].items() if value is not None})
        options = parser.parse_args(ARGUMENTS)
    if min(options.batch_size, options.steps, options.sample_every) < 1:
        refuse("--batch-size, --steps and --sample-every: must be at least 1")
    return options, checkpoint


def main():
    """Train both networks."""
    options, checkpoint = parse()
    torch.manual_seed(options.seed)
    images = load_images(options.dataset, options.image_size).to(DEVICE)
    generator, discriminator = (n.to(DEVICE) for n in networks(images.shape[1:], Z_DIM))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=LR_G, betas=BETAS)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=LR_D, betas=BETAS)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(EMA)).requires_grad_(False)
    draws = torch.Generator().manual_seed(options.seed)  # of the images and the noise of every step
    sample_z = torch.randn(64, Z_DIM, generator=draws).to(DEVICE)
    parts = {"generator": generator, "discriminator": discriminator, "average": average}
    parts |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    facts = {"script": "gan_standalone", "data_shapes": [list(images.shape)]}
    facts["options"] = vars(options) | {"resume": None, "z_dim": Z_DIM}

    start, folder = 0, Path("runs", "gan_standalone", f"{datetime.now():%Y%m%d-%H%M%S}")
    if checkpoint:
        folder = options.resume
        with refusing(f"--resume {folder}: the checkpoint does not fit"):
            if checkpoint["data_shapes"] != facts["data_shapes"]:
                raise ValueError(f"the images were {checkpoint['data_shapes']} and are {facts['data_shapes']}")
            start = checkpoint["step"]
            draws.set_state(checkpoint["draws"])
            for name, part in parts.items():
                part.load_state_dict(checkpoint[name])
    (folder / "samples").mkdir(parents=True, exist_ok=bool(checkpoint))

    interrupts = []  # Ctrl-C ends the run after the step
    handler = signal.signal(signal.SIGINT, lambda *_: interrupts.append(True))
    with SummaryWriter(folder, purge_step=start + 1) as board:
        for step in tqdm(range(start + 1, options.steps + 1), initial=start, total=options.steps):
            rows = torch.randint(len(images), (options.batch_size,), generator=draws).to(DEVICE)
            z = torch.randn(options.batch_size, Z_DIM, generator=draws).to(DEVICE)
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, images[rows] / 127.5 - 1, z)
            average.update_parameters(generator)

            last = bool(interrupts) or step == options.steps
            if step % 50 == 0 or last:
                for name, value in results.items():
                    board.add_scalar(name, value, step)
            if step % options.sample_every == 0 or last:
                if not all(p.isfinite().all() for n in (generator, discriminator, average) for p in n.parameters()):
                    refuse(f"step {step}: a weight is not finite; the last checkpoint is kept; try lower rates", 1)
                grid = make_grid(average(sample_z), normalize=True, value_range=(-1, 1))
                board.add_image("samples", grid, step)
                save_image(grid, folder / "samples" / f"step-{step:06d}.png")
                states = {name: part.state_dict() for name, part in parts.items()}
                unfinished = folder / ".checkpoint.pt"
                with refusing(f"{folder}: no checkpoint is written", 1), unfinished.open("wb") as file:
                    torch.save(facts | states | {"step": step, "draws": draws.get_state()}, file)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(folder / "checkpoint.pt")  # whole, or not at all
            if last:
                break
    print(f"Samples and checkpoint: {folder}; curves: tensorboard --logdir {folder.parent}")
    signal.signal(signal.SIGINT, handler)  # a notebook goes on with its own
    if interrupts:
        sys.exit(130)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # a file that cannot be written
        refuse(error, 1)
    except KeyboardInterrupt:  # outside of the steps
        sys.exit(130)
