"""GAN with class labels: both networks get the class; D first on detached fakes.

G makes an image of the class that it is given. D, a projection discriminator, judges whether an image is real and of
the class that it is given (Miyato and Koyama, "cGANs with Projection Discriminator", 2018). The fakes have the labels
of the batch of real images, so D cannot tell them apart by how often a class occurs.

    x, y ── D ──────────────────── d_loss
    z, y ── G ─┬─ detach, y ── D ── d_loss     backward: through D, ends at detach; D steps
               │
               └─ y ── D ─────────── g_loss     backward: through D without its weights, then G; G steps

The labels y reach both networks. They are integers: no gradient reaches them.

    python scripts/gan_conditional.py
"""

import sys
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from any folder

from common.augment import Augmented
from common.conditional import conditional, load_labeled_images
from common.data import batches
from common.launch import launch_run
from common.losses import discriminator_loss, generator_loss
from common.optimizers import fused_adam, linear_decay
from common.options import GanOptions
from common.run import Run


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, labels, z):
    """One update of each network.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. labels: their classes, int64 (N,), and those of
    the N fakes. z: noise, (N, z_dim). Returns 0-d tensors, detached, still on the device: the two losses, and the mean
    probability of being real that D gave the real and the fake samples.
    """
    fake = generator(z, labels)

    # D: max log D(x, y) + log(1 - D(G(z, y), y)). detach() ends this loss's graph at the fakes: G gets no gradient.
    real_logits = discriminator(real, labels)
    fake_logits = discriminator(fake.detach(), labels)
    d_loss = discriminator_loss(real_logits, fake_logits)
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    # G: max log D(G(z, y), y), judged by the updated D. `inputs` limits the gradients to G's weights: D's would be
    # computed only for the next zero_grad() to drop.
    g_loss = generator_loss(discriminator(fake, labels))
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
    optimizer_g.step()
    return {
        "d_loss": d_loss.detach(),
        "g_loss": g_loss.detach(),
        "d_real": real_logits.detach().sigmoid().mean(),
        "d_fake": fake_logits.detach().sigmoid().mean(),
    }


def main(options: GanOptions, run: Run) -> None:
    """Train both networks in this update order."""
    data = load_labeled_images(options.dataset, options.image_size, options.fit, options.hold_out)
    options = run.options = options.for_images(data.images)
    networks = conditional(options.model, tuple(data.images.shape[1:]), options.z_dim, len(data.classes))
    generator, bare = (network.to(run.device) for network in networks)
    discriminator = Augmented(bare, options.augment == "on", options.mirror)
    optimizer_g = fused_adam(generator.parameters(), options.lr, options.betas)
    optimizer_d = fused_adam(discriminator.parameters(), options.lr_d, options.betas)
    for optimizer in (optimizer_g, optimizer_d):  # under torchrun, average the gradients over all ranks
        optimizer.register_step_pre_hook(run.ranks.average_gradients)
    rate = linear_decay(options.steps, options.steps // 2)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema))

    # A column for each class, the same noise along a row.
    sample_z = torch.randn(8, options.z_dim, device=run.device).repeat_interleave(len(data.classes), dim=0)
    sample_labels = torch.arange(len(data.classes), device=run.device).repeat(8)
    real, _ = next(batches(data, min(len(sample_z), len(data.images)), options.seed))
    pictures = {"real": real, "samples": lambda: average(sample_z, sample_labels)}
    state = {"generator": generator, "discriminator": bare, "average": average}
    state |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    for step, real, labels in run.steps(data, state=state, pictures=pictures, columns=len(data.classes)):
        for optimizer in (optimizer_g, optimizer_d):
            optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * rate(step - 1)
        z = run.noise(len(real), options.z_dim)
        with run.precision():
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, real, labels, z)
        average.update_parameters(generator)
        run.log(step, results)


if __name__ == "__main__":
    launch_run(__file__, main, GanOptions)
