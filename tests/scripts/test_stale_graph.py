"""The mistake this repository is about raises in every script: D steps between two backward passes of one graph."""

import pytest
import torch
from helpers import GANS, call, module_of

from common.losses import discriminator_loss, generator_loss

SMALL = "--model mlp --batch-size 4 --image-size 8 --steps 1 --device cpu"


def stale_gan_step(generator, discriminator, optimizer_g, optimizer_d, real, z, *_):
    real_logits, fake_logits = discriminator(real), discriminator(generator(z))
    d_loss, g_loss = discriminator_loss(real_logits, fake_logits), generator_loss(fake_logits)
    optimizer_d.zero_grad()
    d_loss.backward(inputs=list(discriminator.parameters()), retain_graph=True)
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))


def stale_cyclegan_step(a_to_b, b_to_a, discriminator_a, discriminator_b, optimizer_g, optimizer_d, *rest):
    real_a = rest[2]
    stale_gan_step(a_to_b, discriminator_b, optimizer_g, optimizer_d, real_a, real_a)


CASES = [
    *((script, stale_gan_step, SMALL) for script in GANS),
    ("gan_detach", stale_gan_step, "--batch-size 4 --steps 1 --device cpu"),  # its convolutional networks
    ("cyclegan", stale_cyclegan_step, "--image-size 12 --width 4 --blocks 1 --batch-size 2 --steps 1 --device cpu"),
]


@pytest.mark.parametrize(("script", "step", "arguments"), CASES)
def test_a_stale_graph_raises_with_the_optimizers_of_a_script(script, step, arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(module_of(script), "train_step", step)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        call(script, *arguments.split(), "--runs-dir", tmp_path)


def test_without_the_hook_the_fused_optimizer_says_nothing_so_the_test_above_can_fail(tmp_path, monkeypatch):
    def unguarded(parameters, lr, betas):
        return torch.optim.Adam(parameters, lr=lr, betas=betas, fused=True)

    monkeypatch.setattr("scripts.gan_detach.fused_adam", unguarded)
    monkeypatch.setattr("scripts.gan_detach.train_step", lambda *given: stale_gan_step(*given) or {})
    call("gan_detach", *SMALL.split(), "--runs-dir", tmp_path)
