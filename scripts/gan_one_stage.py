"""GAN, both networks at once, from one pass of the fakes through D: the simultaneous update at its lowest price.

A loss reaches D's weights and the fakes through the logits alone, so G's gradient at a fake is D's, times the ratio of
the two losses' slopes at that fake's logit. D therefore goes backward once, for its weights and for the fakes, and
the weights come out as in `gan_simultaneous.py`. Shen et al., "Training Generative Adversarial Networks in One Stage"
(CVPR 2021).

    x ── D ─────────── d_loss ┐
    z ── G ── fake ─── D ─────┴─ d_loss     backward: through D, down to the fakes
              │
              └─ gradient at the fakes, times g_loss's slope / d_loss's slope     backward: on through G; both step

    python scripts/gan_one_stage.py
"""

import signal
import sys
from pathlib import Path

if __name__ == "__main__":  # loading torch takes seconds: Ctrl-C ends them without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `common` is found from any folder

from common.data import batches, load_images
from common.losses import at_least_float32, discriminator_loss, generator_loss
from common.models import MODELS
from common.optimizers import fused_adam
from common.per_sample import require_per_sample
from common.run.command_line import launch
from common.run.options import GanOptions
from common.training_run import TrainingRun

TINY = torch.finfo(torch.float32).tiny
SCALE = 2.0**60  # about exp(40): a slope may be as small as exp(-80), and what D makes of it must not underflow


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. z: what G makes N fakes from, (N, z_dim). Returns
    0-d tensors, detached, still on the device: the two losses, and the mean probability of being real that D gave the
    real and the fake samples. Raises ValueError unless D gives one logit a sample, from that sample alone, and not in
    float16, whose range is too small for the slopes.
    """
    fake = generator(z)
    leaf = fake.detach().requires_grad_()  # the same fakes, where D's backward pass ends and leaves its gradient
    real_logits, fake_logits = discriminator(real), discriminator(leaf)
    check(discriminator, real, fake_logits)

    # The slopes of both losses at each logit, in float32 at least. d_loss's is about exp(logit) where D is sure of a
    # fake: kept above zero, and rounded to what D's backward pass starts with, it can be divided by.
    real_ends, fake_ends = (at_least_float32(x.detach()).requires_grad_() for x in (real_logits, fake_logits))
    d_loss, g_loss = discriminator_loss(real_ends, fake_ends), generator_loss(fake_ends)
    real_slope, fake_slope = torch.autograd.grad(d_loss, (real_ends, fake_ends))
    real_slope, fake_slope = real_slope.to(real_logits), fake_slope.clamp(min=TINY).to(fake_logits)
    (wanted_slope,) = torch.autograd.grad(g_loss, fake_ends)

    # D: max log D(x) + log(1 - D(G(z))). Scaling by a power of two rounds nothing.
    weights = [p for p in discriminator.parameters() if p.requires_grad]
    scaled = SCALE * real_slope, SCALE * fake_slope
    optimizer_d.zero_grad()
    torch.autograd.backward((real_logits, fake_logits), scaled, inputs=[*weights, leaf])
    for weight in weights:
        if weight.grad is not None:  # as that of a weight which D does not use
            weight.grad /= SCALE

    # G: max log D(G(z)), from the gradient that D's loss has left at each fake.
    ratio = (wanted_slope / fake_slope).view(-1, *[1] * (fake.ndim - 1))
    optimizer_g.zero_grad()
    fake.backward((leaf.grad * ratio / SCALE).to(fake))

    optimizer_d.step()
    optimizer_g.step()
    return {
        "d_loss": d_loss.detach(),
        "g_loss": g_loss.detach(),
        "d_real": real_logits.detach().sigmoid().mean(),
        "d_fake": fake_logits.detach().sigmoid().mean(),
    }


def check(discriminator, real, logits):
    """Raise ValueError for a D that one stage cannot serve. real: (N, ...), logits: what D made of as many fakes."""
    if logits.shape[:1] != real.shape[:1] or logits.numel() != len(real):
        raise ValueError(
            f"one stage needs a D with one logit a sample, ({len(real)}, 1), and this one gives {tuple(logits.shape)} "
            f"for {len(real)} samples; take gan_simultaneous.py"
        )
    device = real.device.type
    if torch.float16 in (logits.dtype, torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device)):
        raise ValueError(
            "one stage divides by slopes as small as exp(-80), which float16 cannot hold; take bfloat16, or "
            "gan_simultaneous.py"
        )
    require_per_sample(discriminator, real)


def main(options: GanOptions) -> None:
    """Train both networks in this update order."""
    run = TrainingRun(__file__, options)
    images = load_images(options.dataset, options.image_size).to(run.device)
    networks = MODELS[options.model](tuple(images.shape[1:]), options.z_dim)
    generator, discriminator = (run.place(network) for network in networks)
    lr_d = options.lr_d or options.lr / 2
    optimizer_g = fused_adam(generator.parameters(), options.lr, options.betas)
    optimizer_d = fused_adam(discriminator.parameters(), lr_d, options.betas)
    for optimizer in (optimizer_g, optimizer_d):  # under torchrun, all processes step on the same gradients
        optimizer.register_step_pre_hook(run.ranks.average_gradients)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema))

    z = run.noise(64)
    run.show(real=next(batches(images, 64, options.seed)), samples=lambda: average(z))
    run.keep(
        generator=generator,
        discriminator=discriminator,
        optimizer_g=optimizer_g,
        optimizer_d=optimizer_d,
        average=average,
    )
    for step, real in run.steps(images):
        with run.precision():
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, real, run.noise(len(real)))
        run.log(step, results)
        average.update_parameters(generator)


if __name__ == "__main__":
    launch(main, GanOptions)
