"""GAN, both networks at once, from one pass of the fakes through D: the cheapest simultaneous update.

Both losses depend on a fake only through its logit. So g_loss's gradient with respect to a fake is d_loss's gradient
times the ratio of the two losses' derivatives with respect to that logit. One backward pass through D is enough for its
weights and for the fakes, and the updates equal those of `gan_simultaneous.py`. Shen et al., "Training Generative
Adversarial Networks in One Stage" (CVPR 2021).

    x ── D ─────────── d_loss ┐
    z ── G ── fake ─── D ─────┴─ d_loss     backward: through D, down to the fakes
              │
              └─ gradient at the fakes, times g_loss' / d_loss' at its logit     backward: through G; both step

    python scripts/gan_one_stage.py
"""

import sys
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from any folder

from common.augment import Augmented
from common.data import batches, load_images
from common.launch import launch_run
from common.losses import at_least_float32, discriminator_loss, generator_loss
from common.optimizers import fused_adam, linear_decay
from common.options import SimultaneousOptions
from common.per_sample import require_per_sample
from common.run import Run

SMALLEST = 2.0**-64  # a derivative that is no smaller leaves gradients at the fakes that do not underflow in float32


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. z: noise for N fakes, (N, z_dim). Returns 0-d
    tensors, detached, still on the device: the two losses, and the mean probability of being real that D gave the
    real and the fake samples. Raises ValueError unless D gives one logit per sample, which depends only on that
    sample, and for float16, whose range is too small for the derivatives.
    """
    fake = generator(z)
    leaf = fake.detach().requires_grad_()  # the same fakes; D's backward pass ends here and leaves its gradient
    real_logits, fake_logits = discriminator(real), discriminator(leaf)
    check(discriminator, real, fake_logits)

    # The derivatives of both losses with respect to each logit, in float32 at least. That of d_loss is about
    # exp(logit) for a fake that D recognises. g_loss's is divided by it below, so it is kept from vanishing: in D's
    # gradient, a fake with a logit below -40 counts up to 2^-64. It is rounded to the dtype of D's backward pass.
    real_ends, fake_ends = (at_least_float32(x.detach()).requires_grad_() for x in (real_logits, fake_logits))
    d_loss, g_loss = discriminator_loss(real_ends, fake_ends), generator_loss(fake_ends)
    grad_d_at_real, grad_d_at_fake = torch.autograd.grad(d_loss, (real_ends, fake_ends))
    grad_d_at_real = grad_d_at_real.to(real_logits)
    grad_d_at_fake = grad_d_at_fake.masked_fill(grad_d_at_fake.abs() < SMALLEST, SMALLEST).to(fake_logits)
    (grad_g_at_fake,) = torch.autograd.grad(g_loss, fake_ends)

    # D: max log D(x) + log(1 - D(G(z))).
    weights = [p for p in discriminator.parameters() if p.requires_grad]
    optimizer_d.zero_grad()
    torch.autograd.backward((real_logits, fake_logits), (grad_d_at_real, grad_d_at_fake), inputs=[*weights, leaf])

    # G: max log D(G(z)), from d_loss's gradient with respect to each fake.
    ratio = (grad_g_at_fake / grad_d_at_fake).view(-1, *[1] * (fake.ndim - 1))
    optimizer_g.zero_grad()
    fake.backward((leaf.grad * ratio).to(fake))

    optimizer_d.step()
    optimizer_g.step()
    return {
        "d_loss": d_loss.detach(),
        "g_loss": g_loss.detach(),
        "d_real": real_logits.detach().sigmoid().mean(),
        "d_fake": fake_logits.detach().sigmoid().mean(),
    }


def check(discriminator, real, logits):
    """Raise ValueError for a D that does not allow one stage. real: (N, ...). logits: those of N fakes."""
    if logits.shape[:1] != real.shape[:1] or logits.numel() != len(real):
        raise ValueError(
            f"one stage needs a D with one logit per sample, ({len(real)}, 1), but this one gives "
            f"{tuple(logits.shape)} for {len(real)} samples; use gan_simultaneous.py"
        )
    device = real.device.type
    if torch.float16 in (logits.dtype, torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device)):
        raise ValueError(
            "one stage divides by derivatives as small as 2^-64, which underflow in float16; use bfloat16 or "
            "gan_simultaneous.py"
        )
    require_per_sample(discriminator, real)


def main(options: SimultaneousOptions, run: Run) -> None:
    """Train both networks in this update order."""
    images = load_images(options.dataset, options.image_size, options.fit, options.hold_out)
    options = run.options = options.for_images(images)
    networks = options.make_networks(images.shape[1:], normalise=0.8)  # a flatter D: with 1, some seeds diverge
    generator, bare = (network.to(run.device) for network in networks)
    discriminator = Augmented(bare, options.augment == "on", options.mirror)
    optimizer_g = fused_adam(generator.parameters(), options.lr, options.betas)
    optimizer_d = fused_adam(discriminator.parameters(), options.lr_d, options.betas)
    for optimizer in (optimizer_g, optimizer_d):  # under torchrun, average the gradients over all ranks
        optimizer.register_step_pre_hook(run.ranks.average_gradients)
    rate = linear_decay(options.steps, options.steps // 2)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema))

    sample_z = torch.randn(64, options.z_dim, device=run.device)
    pictures = {"real": next(batches(images, 64, options.seed)), "samples": lambda: average(sample_z)}
    state = {"generator": generator, "discriminator": bare, "average": average}
    state |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    for step, real in run.steps(images, state=state, pictures=pictures):
        for optimizer in (optimizer_g, optimizer_d):
            optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * rate(step - 1)
        z = run.noise(len(real), options.z_dim)
        with run.precision():
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, real, z)
        average.update_parameters(generator)
        run.log(step, results)


if __name__ == "__main__":
    launch_run(__file__, main, SimultaneousOptions)
