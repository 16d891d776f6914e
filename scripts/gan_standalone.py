"""GAN on one page: `gan_detach.py` in a single file that needs torch, torchvision, tensorboard and tqdm alone.

    x ── D ───────────────── d_loss
    z ── G ─┬─ detach ── D ── d_loss     backward: through D, ends at detach; D steps
            └─ D ──────────── g_loss     backward: through D without its weights, then G; G steps

`--dataset folder/of/images` trains on images of yours, `--resume runs/gan_standalone/<date-time>` continues a run.
"""

import argparse
import signal
import sys
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.tensorboard import SummaryWriter
from torchvision.datasets import MNIST
from torchvision.datasets.folder import IMG_EXTENSIONS, default_loader
from torchvision.transforms.v2.functional import center_crop, pil_to_tensor, resize
from torchvision.utils import make_grid, save_image
from tqdm import tqdm


def discriminator_loss(real_logits, fake_logits):
    """Mean of BCE(D(x), 1) and BCE(D(G(z)), 0): logits of any shape in, a 0-d tensor out."""
    return -(nn.functional.logsigmoid(real_logits).mean() + nn.functional.logsigmoid(-fake_logits).mean()) / 2


def generator_loss(fake_logits):
    """BCE(D(G(z)), 1), the non-saturating form: logits of any shape in, a 0-d tensor out."""
    return -nn.functional.logsigmoid(fake_logits).mean()


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network. real: (N, C, S, S) in [-1, 1]. z: (N, z_dim). Returns detached 0-d tensors."""
    fake = generator(z)
    # D: max log D(x) + log(1 - D(G(z))). detach() ends this loss's graph at the fakes: G gets no gradient from it.
    real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
    d_loss = discriminator_loss(real_logits, fake_logits)
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    # G: max log D(G(z)), as the D just updated sees it. `inputs` keeps gradients that nobody uses out of D's weights.
    g_loss = generator_loss(discriminator(fake))
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


def norm(channels):
    """Return group normalisation: each sample by itself, unlike batch normalisation."""
    return nn.GroupNorm(max(1, channels // 16), channels)


def networks(image_shape, z_dim, width=16):
    """Return G, noise (N, z_dim) to images (N, C, S, S) in [-1, 1], and D, images to logits (N, 1)."""
    channels, side, widths = image_shape[0], image_shape[-1], []  # widths at S / 2, S / 4, ... pixels
    while side > 8:
        widths.append(min(width << len(widths), 8 * width))
        side //= 2
    last, half = widths[-1] * 3 // 2, widths[-1] // 2
    down = [nn.PixelUnshuffle(2), nn.Conv2d(4 * channels, widths[0], 3, padding=1), nn.LeakyReLU(0.2)]
    for narrow, wide in pairwise([*widths, last]):
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(last * 16, 256), nn.LayerNorm(256), nn.LeakyReLU(0.2), nn.Linear(256, 1)]
    up = [nn.Hardtanh(-0.15, 0.15), nn.Linear(z_dim, 128, bias=False), nn.LayerNorm(128, elementwise_affine=False)]
    nn.init.normal_(up[1].weight, std=1.5)  # the norm removes this scale; it only slows learning
    up += [nn.Tanh(), nn.Linear(128, last * side**2, bias=False), nn.Unflatten(1, (last, side, side)), norm(last)]
    up += [nn.Tanh(), Residual(nn.Conv2d(last, half, 3, 1, 1), norm(half), nn.Tanh(), nn.Conv2d(half, last, 3, 1, 1))]
    for wide, narrow in pairwise([last, *reversed(widths[:-1]), channels]):
        up += [norm(wide), nn.Tanh(), nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1)]
    return tuple(nn.Sequential(*n).to(memory_format=torch.channels_last) for n in ([*up, nn.Hardtanh()], down))


def load_images(dataset, size):
    """Return the images of MNIST, or all below a folder in RGB, as uint8 (N, C, S, S)."""
    name = "the download"
    try:
        if dataset == "mnist":
            images = MNIST("data", download=True).data[:, None]
            return images if size in (None, 28) else torch.cat([resize(i, [size, size]) for i in images.split(1000)])
        size, images = size or 64, []
        for name in sorted(path for path in Path(dataset).rglob("*") if path.suffix.lower() in IMG_EXTENSIONS):
            images.append(center_crop(resize(pil_to_tensor(default_loader(name)), [size]), [size, size]))
    except Exception as error:  # a broken file can fail anywhere in its decoder
        refuse(f"--dataset {dataset}: {name} cannot be read ({error})")
    return torch.stack(images) if images else refuse(f"--dataset {dataset}: neither mnist nor a folder with images")


def refuse(message, status=2):
    """End the process with one line on stderr."""
    print("error:", *str(message).split(), file=sys.stderr)
    sys.exit(status)


def parse():
    """Return the options, and the checkpoint that --resume names; its options stand for those not given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error, add = refuse, parser.add_argument
    add("--dataset", default="mnist", help="mnist, downloaded into data/, or a folder of images")
    add("--image-size", type=int, choices=[28, 32, 56, 64, 112, 128, 224, 256], help="default: 28, 64 for a folder")
    add("--z-dim", type=int, default=8, help="length of the noise vector; more for data with more variety")
    add("--batch-size", type=int, default=48, help="images per step")
    add("--steps", type=int, default=1550, help="steps to train, each one update of both networks")
    add("--lr", type=float, default=2e-3, help="Adam's learning rate for G; D has a third of it")
    add("--ema", type=float, default=0.995, help="decay per step of the averaged G that samples are from")
    add("--seed", type=int, default=0, help="fixes the initial weights, the noise and the choice of images")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda, cuda:1, ...")
    add("--runs-dir", default="runs", help="where the run's folder is made")
    add("--log-every", type=int, default=50, help="steps between two points of the curves")
    add("--sample-every", type=int, default=250, help="steps between two sample grids, each with a checkpoint")
    add("--resume", type=Path, help="folder of a run to go on with, by its own options; --steps may be raised")
    options, checkpoint = parser.parse_args(), None
    if options.resume:
        try:
            checkpoint = torch.load(options.resume / "checkpoint.pt", map_location="cpu", weights_only=True)
            if checkpoint["script"] != Path(__file__).stem:
                raise ValueError(f"it was made by {checkpoint['script']}.py")
            stored = [f"--{k.replace('_', '-')}={v}" for k, v in checkpoint["options"].items() if v is not None]
        except Exception as error:  # what is no checkpoint can fail in many ways
            refuse(f"--resume {options.resume}: holds no checkpoint of this script ({error})")
        options, made_with = parser.parse_args([*stored, *sys.argv[1:]]), parser.parse_args(stored)
        for name, value in vars(made_with).items():
            if getattr(options, name) != value and name not in ("steps", "device", "resume"):
                refuse(f"--{name.replace('_', '-')}: the run has {value}; leave the option out")
    for name, value in vars(options).items():
        if type(value) is int and value < 1 and name != "seed":
            refuse(f"--{name.replace('_', '-')} {value}: must be 1 or more")
    return options, checkpoint


def main():
    """Train both networks."""
    options, checkpoint = parse()
    torch.manual_seed(options.seed)
    images = load_images(options.dataset, options.image_size).to(options.device)
    generator, discriminator = (n.to(options.device) for n in networks(images.shape[1:], options.z_dim))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=options.lr, betas=(0.0, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=options.lr / 3, betas=(0.0, 0.999))
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema)).requires_grad_(False)
    draws = torch.Generator().manual_seed(options.seed)  # of the images and the noise of every step
    shown = torch.randn(64, options.z_dim, generator=draws).to(options.device)
    state = {"generator": generator, "discriminator": discriminator, "average": average}
    state |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    stopped, start, folder = [], 0, Path(options.runs_dir, Path(__file__).stem, f"{datetime.now():%Y%m%d-%H%M%S}")
    kept = {"script": Path(__file__).stem, "data_shapes": [list(images.shape)]}
    kept["options"] = vars(options) | {"device": None, "resume": None}
    if checkpoint:
        start, folder = checkpoint["step"], options.resume
        draws.set_state(checkpoint["draws"])
        for name, part in state.items():
            part.load_state_dict(checkpoint[name])
    (folder / "samples").mkdir(parents=True, exist_ok=bool(checkpoint))
    # The first Ctrl-C ends the run after the step under way, a second one at once.
    signal.signal(signal.SIGINT, lambda *_: stopped.append(signal.signal(signal.SIGINT, signal.SIG_DFL)))
    with SummaryWriter(folder, purge_step=start + 1) as board:
        for step in tqdm(range(start + 1, options.steps + 1), initial=start, total=options.steps):
            rows = torch.randint(len(images), (options.batch_size,), generator=draws).to(options.device)
            z = torch.randn(options.batch_size, options.z_dim, generator=draws).to(options.device)
            values = train_step(generator, discriminator, optimizer_g, optimizer_d, images[rows] / 127.5 - 1, z)
            average.update_parameters(generator)
            last = step == options.steps or stopped
            if step % options.log_every == 0 or last:
                for name, value in values.items():
                    board.add_scalar(name, value, step)
            if step % options.sample_every == 0 or last:
                if not all(p.isfinite().all() for n in (generator, discriminator) for p in n.parameters()):
                    refuse(f"step {step}: a weight is not finite; the last checkpoint is kept; try a lower --lr", 1)
                grid = make_grid(average(shown), normalize=True, value_range=(-1, 1))
                board.add_image("samples", grid, step)
                save_image(grid, folder / "samples" / f"step-{step:06d}.png")
                kept |= {"step": step, "draws": draws.get_state()} | {name: p.state_dict() for name, p in state.items()}
                torch.save(kept, folder / ".checkpoint.pt")
                (folder / ".checkpoint.pt").replace(folder / "checkpoint.pt")  # whole, or not at all
            if last and stopped:
                break
    print(f"Samples and checkpoint: {folder}; curves: tensorboard --logdir {folder.parent}")
    sys.exit(128 + signal.SIGINT if stopped else 0)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # a file that cannot be written
        refuse(error, 1)
