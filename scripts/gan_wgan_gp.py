"""GAN, Wasserstein loss with a gradient penalty between real and fake images: WGAN-GP.

D is a critic: its mean over real images, less that over fakes, estimates the distance between the two, as long as D's
gradient with respect to an image has a norm of 1. The penalty holds it there, at random points between real and fake
images. Each step trains D, every fifth G. Gulrajani et al., "Improved Training of Wasserstein GANs" (2017).

    x ── D ────────────────────────────── d_loss     backward: through D
    z ── G ─┬─ detach ── D ────────────── d_loss     backward: through D, ends at detach
            ├─ detach ── y ── D ── dD/dy             y: a point between each fake and an x. dD/dy: back through D to
            │                        │               y, with create_graph, so that this is a graph, too
            │                 (|dD/dy| - 1)^2        backward: through that graph, to D's weights; D steps
            └─ D ──────────────────────── g_loss     backward: through D without its weights, then G; G steps

`--steps` counts D's. The penalty asks for a slope of one, so D's weights are not normalised.

    python scripts/gan_wgan_gp.py
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from any folder

from common.augment import Augmented
from common.data import batches, load_images
from common.launch import launch_run
from common.losses import at_least_float32
from common.optimizers import fused_adam, linear_decay
from common.options import BatchSize, Count, GanOptions, Rate, Weight
from common.penalties import interpolation_penalty
from common.per_sample import require_per_sample
from common.run import Run

# Curves of their own: this loss is a difference of scores, many times larger than the other scripts'.
TAGS = {"d_loss": "loss/wasserstein/critic", "g_loss": "loss/wasserstein/generator"}


@dataclass(frozen=True)
class Options(GanOptions):
    """Options of this script."""

    batch_size: BatchSize = 32
    lr: Rate = 3e-3  # Adam's learning rate, up to half of the steps; then it falls linearly to zero.
    steps: Count = 5000  # Steps to train, each one update of D.
    penalty_weight: Weight = 10.0  # Weight of the penalty; none with 0.
    critic_steps: Count = 5  # Steps of D from one step of G to the next; fewer `--steps` than these do not train G.


def train_step(
    generator, discriminator, optimizer_g, optimizer_d, real, z, train_generator=True, penalty_weight=10.0, mix=None
):
    """One update of D and, with `train_generator`, of G.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. z: what G makes N fakes from, (N, z_dim).
    penalty_weight: at least 0; with 0 no penalty is computed. mix: where between a fake and a real sample the penalty
    is taken, (N,) in [0, 1]; None draws it. Returns 0-d tensors, detached, still on the device: the losses of the
    networks trained, the mean of what D gave the real and the fake samples and, where there is one, the penalty before
    it is weighted. Raises ValueError unless D judges each sample by itself.
    """
    require_per_sample(discriminator, real)
    with torch.set_grad_enabled(train_generator):  # no graph of G where no loss goes backward through it
        fake = generator(z)

    # D: max D(x) - D(G(z)), with a gradient of norm 1 between the two.
    score_real, score_fake = (at_least_float32(discriminator(samples)).mean() for samples in (real, fake.detach()))
    d_loss = score_fake - score_real
    results = {"score/real": score_real, "score/fake": score_fake}
    if penalty_weight != 0:
        penalty = interpolation_penalty(discriminator, real, fake, mix)
        d_loss = d_loss + penalty_weight * penalty
        results["penalty"] = penalty
    results["d_loss"] = d_loss
    optimizer_d.zero_grad()
    d_loss.backward(inputs=[p for p in discriminator.parameters() if p.requires_grad])  # no gradient for y
    optimizer_d.step()

    # G: max D(G(z)), as the D just updated sees it. `inputs` names the leaves this loss is for, so that D's weights get
    # no gradient that the next zero_grad() would only throw away.
    if train_generator:
        g_loss = -at_least_float32(discriminator(fake)).mean()
        results["g_loss"] = g_loss
        optimizer_g.zero_grad()
        g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
        optimizer_g.step()
    return {name: value.detach() for name, value in results.items()}


def main(options: Options, run: Run) -> None:
    """Train both networks in this update order."""
    images = load_images(options.dataset, options.image_size, options.fit, options.hold_out)
    options = run.options = options.for_images(images)
    networks = options.make_networks(images.shape[1:], normalise=0)  # the penalty bounds D's slope
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
        train_generator = step % options.critic_steps == 0
        mix = torch.rand(options.batch_size, generator=run.generator)[run.ranks.rows]
        z = run.noise(len(real), options.z_dim)
        with run.precision():
            weight = options.penalty_weight
            results = train_step(
                generator, discriminator, optimizer_g, optimizer_d, real, z, train_generator, weight, mix
            )
        average.update_parameters(generator)
        run.log(step, {TAGS.get(name, name): value for name, value in results.items()})


if __name__ == "__main__":
    launch_run(__file__, main, Options)
