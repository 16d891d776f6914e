# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]
# ///
"""GAN on one page: `gan_detach.py` in a single file, without its augmentation.

Images are drawn with replacement, not in epochs, and all of a folder are trained on: none is held out.

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
import tempfile
from contextlib import contextmanager, nullcontext
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
from torchvision.transforms.v2.functional import pil_to_tensor, resize
from torchvision.utils import make_grid, save_image
from tqdm import tqdm

ARGUMENTS = sys.argv[1:] if "__file__" in globals() else []  # a notebook's are its own: write yours into the list
SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Z_DIM, STYLE = 64, 128  # lengths of the noise vector, and of the style that G makes of it
RATES = {True: (5e-3, 5e-3), False: (2e-3, 3e-3)}  # for G and D; True: up to 32 pixels. They fall in the second half
BETAS = (0.0, 0.9)  # of Adam
SIZES = {28: 2, 32: 2, 56: 3, 64: 3, 112: 4, 128: 4, 224: 5, 256: 5}  # pixels a side, and how often it is halved
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


class Normalised(nn.Module):
    """Gives a weight, as a matrix, singular values with a root mean square of 1: it bounds D's slope."""

    def forward(self, weight):
        """Return the normalised weight."""
        rank = min(len(weight), weight[0].numel())
        return weight * (rank**0.5 / torch.linalg.vector_norm(weight))


class Styled(nn.GroupNorm):
    """Group normalisation, which alone removes the mean colour; then the style shifts and maybe scales each channel."""

    def __init__(self, channels, scales):
        super().__init__(channels // 8, channels, affine=False)  # of each sample by itself, not of the batch
        self.change = nn.Linear(STYLE, (1 + scales) * channels)

    def forward(self, features, style):
        """Return features (N, channels, H, W), given such features and styles (N, STYLE)."""
        *scales, shift = self.change(style)[..., None, None].split(self.num_channels, dim=1)
        features = super().forward(features)
        return torch.addcmul(shift, features, 1 + scales[0]) if scales else features + shift


class Generator(nn.Sequential):
    """Its first layer maps the noise to a style: the second takes it, and each `Styled` takes it again."""

    def forward(self, z):
        """Return images (N, C, S, S) in [-1, 1], given noise (N, Z_DIM)."""
        mapping, *layers = self
        features = style = nn.functional.layer_norm(mapping(z), [STYLE]).tanh()
        for layer in layers:
            features = layer(features, style) if isinstance(layer, Styled) else layer(features)
        return features


def networks(image_shape):
    """Return G, noise (N, Z_DIM) to images (N, C, S, S) in [-1, 1], and D, images to logits (N, 1)."""
    channels, _, side = image_shape
    plain = channels == 1 and side <= 32  # then G is cheaper; else, its transposed convolutions would leave a lattice
    widths = [16, 32, 64, 128, 128][: SIZES[side]]  # channels at S/2, S/4, ... pixels
    last, side = widths[-1] * 3 // 2, side >> len(widths)
    down = [nn.PixelUnshuffle(2)]  # squares of 2x2 pixels become channels
    for narrow, wide in pairwise([4 * channels, *(2 * wide for wide in widths)]):  # half the size each time, to 4x4
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
    down += [nn.Flatten(), nn.Linear(wide * 16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)]
    for layer in [layer for layer in down if hasattr(layer, "weight")]:
        nn.utils.parametrize.register_parametrization(layer, "weight", Normalised())

    mapping = nn.Linear(Z_DIM, STYLE, bias=False)
    nn.init.orthogonal_(mapping.weight, gain=3.5)
    up = [nn.Linear(STYLE, last * side**2), nn.Unflatten(1, (last, side, side))]  # (last, 7, 7) or (last, 8, 8)
    up += [nn.GroupNorm(last // 8, last), nn.ReLU()]
    for wide, narrow in pairwise([last, *reversed(widths[:-1]), *([] if plain else [8])]):  # twice the size each time
        if plain:
            up += [nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1)]
        else:
            up += [nn.Conv2d(wide, narrow, 1), nn.Upsample(scale_factor=2, mode="bilinear")]
            up += [nn.Conv2d(narrow, narrow, 3, padding=1)]
        up += [Styled(narrow, scales=not plain), nn.ReLU()]
    shuffle = [nn.PixelShuffle(2)] if plain else []  # plain images are made as squares of 2x2 pixels, first as channels
    up += [nn.Conv2d(narrow, 4 * channels if plain else channels, 3, padding=1), *shuffle, nn.Tanh()]
    pair = Generator(mapping, *up), nn.Sequential(*down)
    return tuple(network.to(memory_format=torch.channels_last) for network in pair)


def load_images(dataset, size):
    """Return the images of MNIST, or all below a folder, as uint8 (N, C, S, S): upright, cropped, on white."""
    if dataset == "mnist":
        return resize(MNIST("data", download=True).data[:, None], [size or 28, size or 28])
    images, folder = [], Path(dataset or os.devnull)  # Path("") is the current folder
    for path in sorted(path for path in folder.rglob("[!.]*") if path.suffix.lower() in SUFFIXES):
        with exit_on_error(f"{path}: cannot be read as an image of 8 bits a channel"), Image.open(path) as image:
            if image.mode[0] in "IF":  # convert() would make all above 255 white
                raise ValueError("it has more")
            image = ImageOps.exif_transpose(image).convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
            images.append(pil_to_tensor(ImageOps.fit(image, (size or 64, size or 64))))
    return torch.stack(images)


@contextmanager
def exit_on_error(subject):
    """End the process with one line on stderr if the block fails, whatever it raises: files fail in many ways."""
    try:
        yield
    except Exception as error:
        print(f"error: {subject} ({' '.join(str(error).split())})", file=sys.stderr)
        sys.exit(2)


def parse():
    """Return the options, and the checkpoint of the run to go on with, whose options are the defaults then."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description="GAN on one page.")  # errors in one line
    add = parser.add_argument
    add("--dataset", default="mnist", help="mnist, downloaded into data/, or a folder of images")
    add("--image-size", type=int, choices=[*SIZES], help="default: 28, 64 for a folder")
    add("--batch-size", type=int, default=64, help="images per step")
    add("--steps", type=int, default=2000, help="steps to train, each one update of both networks")
    add("--seed", type=int, default=0, help="fixes the initial weights, the noise and the choice of images")
    add("--sample-every", type=int, default=250, help="steps between two sample grids, each with a checkpoint")
    add("--resume", type=Path, help="folder of a run to go on with, by its own options where none are given")
    options, checkpoint = parser.parse_args(ARGUMENTS), None
    if options.resume:
        with exit_on_error(f"--resume {options.resume}: holds no checkpoint of this script"):
            checkpoint = torch.load(options.resume / "checkpoint.pt", map_location="cpu", weights_only=True)
            parser.set_defaults(**checkpoint["options"])
        options = parser.parse_args(ARGUMENTS)
    if not 0 < options.batch_size <= 2**20 or min(options.steps, options.sample_every) < 1 or options.seed >> 63:
        parser.error("--batch-size: 1 to 1048576; --steps, --sample-every: at least 1; --seed: 0 to 2**63 - 1")
    if torch.distributed.is_torchelastic_launched():
        parser.error("it trains in one process; start it with python, not with torchrun")
    if options.dataset not in ("mnist", ""):  # resumed in another folder, a run takes the same images
        options.dataset = str(Path(options.dataset).absolute())
    return options, checkpoint


def main():
    """Train both networks."""
    options, checkpoint = parse()
    torch.manual_seed(options.seed)
    with exit_on_error(f"--dataset {options.dataset!r}: no images can be read or downloaded; name mnist or a folder"):
        images = load_images(options.dataset, options.image_size).to(DEVICE)
    generator, discriminator = (n.to(DEVICE) for n in networks(images.shape[1:]))
    rates = zip((generator, discriminator), RATES[images.shape[-1] <= 32], strict=True)
    optimizer_g, optimizer_d = (torch.optim.Adam(network.parameters(), lr, BETAS) for network, lr in rates)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(EMA)).requires_grad_(False)
    sample_z = torch.randn(64, Z_DIM).to(DEVICE)
    parts = {"generator": generator, "discriminator": discriminator, "average": average}
    parts |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    facts = {"script": "gan_standalone", "data_shapes": [list(images.shape)]}
    facts["options"] = vars(options) | {"resume": None, "z_dim": Z_DIM}
    start, folder = 0, options.resume or Path("runs", "gan_standalone", f"{datetime.now():%Y%m%d-%H%M%S-%f}")
    if checkpoint:
        with exit_on_error(f"--resume {folder}: the checkpoint does not fit"):
            if checkpoint["data_shapes"] != facts["data_shapes"]:
                raise ValueError(f"the images were {checkpoint['data_shapes']} and are {facts['data_shapes']}")
            start = checkpoint["step"]
            torch.set_rng_state(checkpoint["draws"])
            for name, part in parts.items():
                part.load_state_dict(checkpoint[name])
    interrupts = []  # Ctrl-C ends the run after the step, which is saved
    signal.signal(signal.SIGINT, lambda *_: interrupts.append(True))
    is_audited = os.environ.get("GRADIENT_AUDIT") == str(os.getpid())
    scratch, note = (tempfile.TemporaryDirectory(), ", not kept") if is_audited else (nullcontext(folder), "")
    with scratch as parent, SummaryWriter(parent, purge_step=start + 1) as board:
        folder = Path(parent)
        (folder / "samples").mkdir(exist_ok=bool(checkpoint))
        print(f"Samples and checkpoint{note}: {folder}; curves: tensorboard --logdir {folder.parent}", file=sys.stderr)
        shown = {"initial": start, "total": options.steps, "mininterval": 0.1 if sys.stderr.isatty() else 10}
        for step in tqdm(range(start + 1, options.steps + 1), **shown):
            for optimizer in (optimizer_g, optimizer_d):
                decay = min(1.0, (options.steps - step + 1) / (options.steps - options.steps // 2))
                optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * decay
            rows = torch.randint(len(images), (options.batch_size,)).to(DEVICE)
            z = torch.randn(options.batch_size, Z_DIM).to(DEVICE)
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, images[rows] / 127.5 - 1, z)
            average.update_parameters(generator)
            last = interrupts or step == options.steps
            if step % 50 == 0 or last:
                for name, value in results.items():
                    board.add_scalar(name, value, step)
            if step % options.sample_every == 0 or last:
                if not all(p.isfinite().all() for n in (generator, discriminator, average) for p in n.parameters()):
                    sys.exit(f"error: step {step}: a weight is not finite; the last checkpoint is kept; lower LR")
                grid = make_grid(average(sample_z), normalize=True, value_range=(-1, 1))
                board.add_image("samples", grid, step)
                save_image(grid, folder / "samples" / f"step-{step:06d}.png")
                states = {name: part.state_dict() for name, part in parts.items()}
                unfinished = folder / ".checkpoint.pt"
                try:
                    with unfinished.open("wb") as file:
                        torch.save(facts | states | {"step": step, "draws": torch.get_rng_state()}, file)
                        os.fsync(file.fileno())  # torch.save has flushed it
                    unfinished.replace(folder / "checkpoint.pt")  # whole, or not at all
                except Exception as error:
                    unfinished.unlink(missing_ok=True)
                    sys.exit(f"error: {folder}: no checkpoint is written; is there space left? ({error})")
            if interrupts:
                raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # a file that cannot be written
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a notebook goes on with it
