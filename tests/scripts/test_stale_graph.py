"""The mistake this repository is about raises in every script: D steps between two backward passes of one graph."""

import pytest
import torch
import tyro
from helpers import GANS, module_of

from common.losses import discriminator_loss, generator_loss
from common.models import mlp
from common.optimizers import fused_adam

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


def run(script, step, arguments, folder, monkeypatch):
    """Run a script's main, which makes the networks and optimizers, with another step in place of its own."""
    module = module_of(script)
    monkeypatch.setattr(module, "train_step", step)
    options = tyro.cli(module.main.__annotations__["options"], args=[*arguments.split(), "--runs-dir", str(folder)])
    module.main(options)


@pytest.mark.parametrize("model", ["mlp", "conv"])
@pytest.mark.parametrize("script", GANS)
def test_a_stale_graph_raises_with_the_optimizers_of_a_gan_script(script, model, tmp_path, monkeypatch):
    arguments = SMALL if model == "mlp" else "--batch-size 4 --steps 1 --device cpu"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(script, stale_gan_step, arguments, tmp_path, monkeypatch)


def test_a_stale_graph_raises_with_the_optimizers_of_the_cyclegan(tmp_path, monkeypatch):
    arguments = "--image-size 12 --width 4 --blocks 1 --batch-size 2 --steps 1 --device cpu"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run("cyclegan", stale_cyclegan_step, arguments, tmp_path, monkeypatch)


def test_without_the_hook_the_fused_optimizer_says_nothing_so_the_tests_above_can_fail(tmp_path, monkeypatch):
    def unguarded(parameters, lr, betas):
        return torch.optim.Adam(parameters, lr=lr, betas=betas, fused=True)

    monkeypatch.setattr("scripts.gan_detach.fused_adam", unguarded)

    def step(*given):
        stale_gan_step(*given)
        return {}

    run("gan_detach", step, SMALL, tmp_path, monkeypatch)


@pytest.mark.parametrize("cache", [True, False])
def test_under_autocast_the_graph_has_copies_of_the_weights_and_the_gradient_is_that_of_the_old_discriminator(cache):
    """No error, and rightly so: a step overwrites nothing that the backward pass needs."""
    gradients = []
    for step_between in (True, False):
        torch.manual_seed(0)
        generator, discriminator = mlp((1, 8, 8), 4)
        optimizer = fused_adam(discriminator.parameters(), 0.1, (0.5, 0.9))
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=cache):
            logits = discriminator(generator(torch.randn(4, 4)))
            discriminator_loss(logits, logits).backward(retain_graph=True)
            if step_between:
                optimizer.step()
            generator.zero_grad()
            generator_loss(logits).backward()
        gradients.append([p.grad for p in generator.parameters()])
    assert all(a.equal(b) for a, b in zip(*gradients, strict=True))
    assert any(gradient.any() for gradient in gradients[0])
