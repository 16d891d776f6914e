"""GAN, relativistic loss with gradient penalties on real and on fake images: R3GAN's update.

D learns to rate each real image higher than the fake it is paired with, and the squared norms of its gradients with
respect to both are penalised. With `create_graph` such a gradient has a graph of its own, which ends at D's weights.
Huang et al., "The GAN is dead; long live the GAN! A Modern Baseline GAN" (NeurIPS 2024).

    x ── D ─┬─────────────────────── d_loss     backward: through D, as in gan_detach.py
            └─ dD/dx ── |dD/dx|^2 ── d_loss     dD/dx: back through D to x, with create_graph: a graph, too
    z ── G ─┬─ detach ── D ─┬─────── d_loss     backward: through that graph and through D, to D's weights; D steps
            │               └─ |dD/dG(z)|^2         as for x
            └─ D ── beside D(x) ──── g_loss     backward: through D without its weights, then G; G steps

`--penalty-every k` takes the penalties at every k-th step, at k times the weight (Karras et al. 2020). They hold D, so
its weights are not normalised.

    python scripts/gan_r3.py
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
from common.optimizers import fused_adam, linear_decay
from common.options import Count, GanOptions, Weight
from common.penalties import at_least_float32, relativistic_loss, zero_centred_penalty
from common.per_sample import require_per_sample
from common.run import Run


@dataclass(frozen=True)
class Options(GanOptions):
    """Options of this script."""

    penalty_weight: Weight = 0.1  # Weight of the penalties: half of it each, and none with 0.
    penalty_every: Count = 5  # Steps from one penalty to the next, of so many times the weight; fewer steps have none.


def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z, penalty_weight=1.0):
    """One update of each network.

    real: N samples of any shape, (N, C, H, W) in [-1, 1] for images. z: what G makes N fakes from, (N, z_dim).
    penalty_weight: at least 0; with 0 no penalty is computed. Returns 0-d tensors, detached, still on the device: both
    losses, the mean logits of real and of fake samples and, with a penalty, its two parts without their weight. Raises
    ValueError unless D judges each sample by itself.
    """
    require_per_sample(discriminator, real)
    fake = generator(z)

    # D: max log sigmoid(D(x) - D(G(z))). Leaves that require a gradient are what a penalty is taken at.
    real_leaf, fake_leaf = (samples.detach().requires_grad_(penalty_weight != 0) for samples in (real, fake))
    real_logits, fake_logits = discriminator(real_leaf), discriminator(fake_leaf)
    penalties = {}
    if penalty_weight != 0:
        penalties["penalty/real"] = zero_centred_penalty(real_logits, real_leaf)
        penalties["penalty/fake"] = zero_centred_penalty(fake_logits, fake_leaf)
    d_loss = relativistic_loss(real_logits, fake_logits) + penalty_weight / 2 * sum(penalties.values())
    optimizer_d.zero_grad()
    d_loss.backward(inputs=[p for p in discriminator.parameters() if p.requires_grad])  # and not for the two leaves
    optimizer_d.step()

    # G: max log sigmoid(D(G(z)) - D(x)), as the D just updated sees both; no gradient is computed for D's weights.
    with torch.no_grad():
        real_again = discriminator(real)
    g_loss = relativistic_loss(discriminator(fake), real_again)
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])
    optimizer_g.step()
    scores = {"score/real": at_least_float32(real_logits).mean(), "score/fake": at_least_float32(fake_logits).mean()}
    results = {"d_loss": d_loss, "g_loss": g_loss} | scores | penalties
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
        weight = 0.0 if step % options.penalty_every else options.penalty_every * options.penalty_weight
        z = run.noise(len(real), options.z_dim)
        with run.precision():
            results = train_step(generator, discriminator, optimizer_g, optimizer_d, real, z, weight)
        average.update_parameters(generator)
        run.log(step, results)


if __name__ == "__main__":
    launch_run(__file__, main, Options)
