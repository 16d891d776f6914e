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

import sys
from pathlib import Path

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `common` is found from any folder

from common.command_line import BadInput, launch
from common.data import batches, load_images
from common.losses import discriminator_loss, generator_loss
from common.models import MODELS
from common.run_options import GanOptions
from common.training_run import TrainingRun

TINY = torch.finfo(torch.float32).tiny
SCALE = 2.0**60  # about exp(40): a slope may be as small as exp(-80), and what D makes of it must not underflow


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network, if `check` has nothing against this D.

    real: (N, C, H, W) in [-1, 1]. z: (N, z_dim). Returns 0-d tensors, detached, still on the device: the two losses,
    and the mean probability of being real that D gave the real and the fake images.
    """
    fake = generator(z)
    leaf = fake.detach().requires_grad_()  # the same fakes, where D's backward pass ends and leaves its gradient
    real_logits, fake_logits = discriminator(real), discriminator(leaf)
    d_loss, g_loss = discriminator_loss(real_logits, fake_logits), generator_loss(fake_logits)

    # The slopes of both losses at each logit; these passes end at the logits. d_loss's is about exp(logit) where D is
    # sure of a fake: kept above zero, it can be divided by.
    real_slope, fake_slope = torch.autograd.grad(d_loss, (real_logits, fake_logits))
    fake_slope = fake_slope.clamp(min=TINY)
    (wanted_slope,) = torch.autograd.grad(g_loss, fake_logits)

    # D: max log D(x) + log(1 - D(G(z))). Scaling by a power of two rounds nothing.
    optimizer_d.zero_grad()
    torch.autograd.backward((real_logits, fake_logits), (SCALE * real_slope, SCALE * fake_slope))
    for parameter in discriminator.parameters():
        parameter.grad /= SCALE

    # G: max log D(G(z)), from the gradient that D's loss has left at each fake.
    ratio = (wanted_slope / fake_slope).view(-1, 1, 1, 1)
    optimizer_g.zero_grad()
    fake.backward(leaf.grad * ratio / SCALE)

    optimizer_d.step()
    optimizer_g.step()
    return {
        "d_loss": d_loss.detach(),
        "g_loss": g_loss.detach(),
        "d_real": real_logits.detach().sigmoid().mean(),
        "d_fake": fake_logits.detach().sigmoid().mean(),
    }


def check(discriminator, images):
    """Raise BadInput unless D gives one logit for each of the `images` (N, C, H, W), N > 1, and from it alone."""
    for name, module in discriminator.named_modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm):
            raise BadInput(
                f"the discriminator's layer {name or 'itself'} is a {type(module).__name__}, which looks across the "
                "batch; one stage needs a D that judges each sample by itself: take GroupNorm, or gan_simultaneous.py"
            )
    images = images.detach().clone().requires_grad_()
    logits = discriminator(images)
    if logits.shape[:1] != images.shape[:1] or logits.numel() != len(images):
        raise BadInput(
            f"the discriminator makes logits of shape {tuple(logits.shape)} from {len(images)} images; one stage needs "
            f"one logit a sample, ({len(images)}, 1): take gan_simultaneous.py"
        )
    (gradient,) = torch.autograd.grad(logits[0].sum(), images)
    if gradient[1:].any():
        raise BadInput(
            "the discriminator's logit of one image depends on the other images of the batch; one stage needs a D that "
            "judges each sample by itself: take gan_simultaneous.py"
        )


def main(options: GanOptions) -> None:
    """Train both networks in this update order."""
    run = TrainingRun(__file__, options)
    images = load_images(options.dataset, options.image_size).to(run.device)
    networks = MODELS[options.model](tuple(images.shape[1:]), options.z_dim)
    generator, discriminator = (run.place(network) for network in networks)
    check(discriminator, next(batches(images, 2, options.seed)))
    lr_d = options.lr_d or options.lr / 2
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=options.lr, betas=options.betas, fused=True)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=lr_d, betas=options.betas, fused=True)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema**10))

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
        run.log(step, train_step(generator, discriminator, optimizer_g, optimizer_d, real, run.noise(len(real))))
        if step % 10 == 0 or not options.ema:  # each time would take 4% of the MLP's step
            average.update_parameters(generator)


if __name__ == "__main__":
    launch(main, GanOptions)
