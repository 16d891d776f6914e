"""GAN, G first: G trains against the D of the previous step, then D trains on the same fakes.

G's graph is freed before D's backward pass, so this order needs the least memory of those that use one batch of fakes
for both. D's fakes are those of G before its step, detached.

    z ── G ─┬─ D ──────────── g_loss     backward: through D without its weights, then G; G steps
            │
            └─ detach ── D ── d_loss     backward: through D, ends at detach; D steps
    x ── D ───────────────── d_loss

    python scripts/gan_generator_first.py
"""

import sys
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from any folder

from common.augment import Augmented
from common.data import batches, load_images
from common.launch import launch_run
from common.losses import discriminator_loss, generator_loss
from common.optimizers import fused_adam, linear_decay
from common.options import SimultaneousOptions
from common.run import Run


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """One update of each network.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. z: noise for N fakes, (N, z_dim). Returns 0-d
    tensors, detached, still on the device: the two losses, and the mean probability of being real that D gave the
    real and the fake samples.
    """
    fake = generator(z)

    # G: max log D(G(z)). `inputs` limits the gradients to G's weights; D's get none.
    g_loss = generator_loss(discriminator(fake))
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
    optimizer_g.step()

    # D: max log D(x) + log(1 - D(G(z))), on the fakes made before G's step. Their graph has been freed: without
    # detach(), this backward pass would need it.
    real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
    d_loss = discriminator_loss(real_logits, fake_logits)
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    return {
        "d_loss": d_loss.detach(),
        "g_loss": g_loss.detach(),
        "d_real": real_logits.detach().sigmoid().mean(),
        "d_fake": fake_logits.detach().sigmoid().mean(),
    }


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
