"""Gradient penalties beside what reference.py computes: slopes of zero, half precision, and when they come."""

import pytest
import torch
from helpers import SMALL, call, module_of, saved
from test_any_networks import networks, vectors
from torch import nn

from common.penalties import interpolation_penalty, relativistic_loss, sample_gradients, zero_centred_penalty

pytestmark = pytest.mark.numerics
N = 3


def drawn(*shape):
    """Real and fake samples, and a mix."""
    torch.manual_seed(1)
    return torch.randn(N, *shape).double(), torch.randn(N, *shape).double(), torch.rand(N).double()


def test_samples_of_two_shapes_are_not_mixed():
    with pytest.raises(ValueError, match=r"must have one shape, not \[4, 1\] and \[4, 3\]"):
        interpolation_penalty(lambda samples: samples.sum(1), torch.ones(4, 1), torch.ones(4, 3))


def test_the_penalty_of_a_slope_of_zero_whose_norm_has_no_derivative_has_a_gradient_of_zero():
    discriminator = nn.Linear(2, 1, bias=False).double()
    nn.init.zeros_(discriminator.weight)
    samples = drawn(2)[0].requires_grad_()
    zero_centred = zero_centred_penalty(discriminator(samples), samples)
    for found, penalty in ((zero_centred, 0), (interpolation_penalty(discriminator, *drawn(2)), 1)):
        assert found.item() == penalty
        assert torch.autograd.grad(found, discriminator.weight)[0].tolist() == [[0, 0]]


def test_the_relativistic_loss_of_extreme_logits_and_of_pairs_alone():
    assert relativistic_loss(torch.tensor([-1e4]), torch.tensor([1e4])).item() == 2e4
    assert relativistic_loss(torch.tensor([1e4]), torch.tensor([-1e4])).item() == 0
    with pytest.raises(ValueError, match=r"pairs logits, but got \(3, 1\) and \(3,\)"):
        relativistic_loss(torch.zeros(3, 1), torch.zeros(3))


def test_the_slopes_of_half_precision_logits_are_float32():
    real = torch.randn(N, 5).bfloat16().requires_grad_()
    assert sample_gradients(networks(vectors)[1].bfloat16()(real), real).dtype == torch.float32


def given_to_the_step(script, arguments, folder, monkeypatch):
    """Return what a run of six steps gave its step beside networks, optimizers, images and noise, and its results."""
    module, seen = module_of(script), []
    train_step = module.train_step

    def watched(*given):
        results = train_step(*given)
        seen.append((*given[6:], any("penalty" in name for name in results)))
        return results

    monkeypatch.setattr(module, "train_step", watched)
    call(script, *SMALL, *arguments.split(), "--steps", 6, "--runs-dir", folder)
    return seen


def test_a_lazy_penalty_comes_every_so_many_steps_at_so_many_times_the_weight(tmp_path, monkeypatch):
    arguments = "--penalty-every 3 --penalty-weight 0.5 --lr 6e-3 --lr-d 3e-3"
    seen = given_to_the_step("gan_r3", arguments, tmp_path, monkeypatch)
    assert seen == [(weight, weight > 0) for weight in (0.0, 0.0, 1.5)] * 2
    rates = [saved(tmp_path)[f"optimizer_{it}"]["param_groups"][0]["lr"] for it in "gd"]
    assert rates == [2e-3, 1e-3]  # of the last step, when two of the three in which they fall to zero are done


def test_the_generator_learns_after_so_many_critic_steps_at_points_drawn_anew(tmp_path, monkeypatch):
    seen = given_to_the_step("gan_wgan_gp", "--critic-steps 3 --penalty-weight 2", tmp_path, monkeypatch)
    assert [given[:2] for given in seen] == [(False, 2.0), (False, 2.0), (True, 2.0)] * 2
    assert len({tuple(mix.tolist()) for _, _, mix, _ in seen}) == 6
    assert all(mix.shape == (4,) for _, _, mix, _ in seen)
    assert not any(given[-1] for given in given_to_the_step("gan_wgan_gp", "--penalty-weight 0", tmp_path, monkeypatch))
