"""Gradient penalties are what their formulas say and reach D's weights alone."""

import pytest
import torch
from helpers import call, module_of, path_of, saved
from processes import RUN_AUDIT, forked
from test_any_networks import images, networks, vectors
from torch import nn

from common.penalties import interpolation_penalty, relativistic_loss, sample_gradients, zero_centred_penalty

pytestmark = pytest.mark.numerics
N = 3
TINY = "--model mlp --image-size 8 --batch-size 4 --device cpu"


def zero_centred(discriminator, real, fake, mix):
    real = real.detach().requires_grad_()
    return zero_centred_penalty(discriminator(real), real)


PENALTIES = {"zero-centred": zero_centred, "between": interpolation_penalty}


def drawn(*shape):
    """Real and fake samples, and a mix."""
    torch.manual_seed(1)
    return torch.randn(N, *shape).double(), torch.randn(N, *shape).double(), torch.rand(N).double()


def linear(*weights):
    """D(x) = weights * x, with the slope `weights` everywhere."""
    discriminator = nn.Linear(len(weights), 1, bias=False).double()
    discriminator.weight.data.copy_(torch.tensor([weights]))
    return discriminator


BY_HAND = [  # the penalty of the slope w, |w|^2 or (|w| - 1)^2, and its gradient, 2 w or 2 (|w| - 1) w / |w|
    ("zero-centred", (3.0, 4.0), 25, [6, 8]),
    ("between", (3.0, 4.0), 16, [4.8, 6.4]),
    ("zero-centred", (0.0, 0.0), 0, [0, 0]),
    ("between", (0.0, 0.0), 1, [0, 0]),  # where the norm has no derivative
]


@pytest.mark.parametrize(("name", "slope", "penalty", "gradient"), BY_HAND)
def test_the_penalties_of_a_linear_discriminator_by_hand(name, slope, penalty, gradient):
    discriminator = linear(*slope)
    found = PENALTIES[name](discriminator, *drawn(2))
    found.backward()
    assert found.item() == pytest.approx(penalty, rel=1e-12)
    assert discriminator.weight.grad[0].tolist() == pytest.approx(gradient, rel=1e-12)


def test_each_point_lies_between_one_real_and_one_fake_sample_by_one_weight():
    seen = []

    def discriminator(samples):
        seen.append(samples.detach())
        return (samples * weight).sum((1, 2, 3))

    weight = torch.ones((), requires_grad=True)
    real, fake = torch.ones(64, 1, 4, 4), torch.zeros(64, 1, 4, 4)
    interpolation_penalty(discriminator, real, fake)
    shares = seen[0][:, :1, :1, :1]
    assert seen[0].equal(shares.expand_as(real))
    assert 0 <= shares.min() < 0.2 < 0.8 < shares.max() <= 1


def test_the_relativistic_loss_by_hand_and_for_extreme_logits_and_pairs_alone():
    assert relativistic_loss(torch.zeros(3), torch.zeros(3)).item() == pytest.approx(0.693147, rel=1e-5)
    assert relativistic_loss(torch.tensor([-1e4]), torch.tensor([1e4])).item() == 2e4
    assert relativistic_loss(torch.tensor([1e4]), torch.tensor([-1e4])).item() == 0
    with pytest.raises(ValueError, match=r"pairs logits, but got \(3, 1\) and \(3,\)"):
        relativistic_loss(torch.zeros(3, 1), torch.zeros(3))


def test_the_slopes_of_half_precision_logits_are_float32():
    real = torch.randn(N, 5).bfloat16().requires_grad_()
    assert sample_gradients(networks(vectors)[1].bfloat16()(real), real).dtype == torch.float32


def step_parts(make, optimizer=torch.optim.SGD):
    """Return G, D and their optimizers."""
    pair = [network.double() for network in networks(make)]
    return *pair, *(optimizer(network.parameters(), lr=0.0) for network in pair)


def test_a_step_without_the_generator_leaves_it_and_its_optimizer_alone():
    generator, _, optimizer_g, _ = parts = step_parts(images, torch.optim.Adam)
    results = module_of("gan_wgan_gp").train_step(*parts, drawn(1, 8, 8)[0], drawn(4)[1], False)
    assert set(results) == {"d_loss", "score/real", "score/fake", "penalty"}
    assert not optimizer_g.state
    assert all(p.grad is None for p in generator.parameters())


def given_to_the_step(script, arguments, folder, monkeypatch):
    """Return what a run of six steps gave its step beside networks, optimizers, images and noise, and its results."""
    module, seen = module_of(script), []
    train_step = module.train_step

    def watched(*given):
        results = train_step(*given)
        seen.append((*given[6:], any("penalty" in name for name in results)))
        return results

    monkeypatch.setattr(module, "train_step", watched)
    call(script, *TINY.split(), *arguments.split(), "--steps", 6, "--runs-dir", folder)
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


# First the look at whether D mixes samples, in D's steps 1, 2, 4, 8.
ROWS = {
    "gan_r3": [("2x", "-", "read"), ("6x", "-", "read"), ("3x", "-", "used"), ("3x", "used", "-")],
    "gan_wgan_gp": [("4x", "-", "read"), ("15x", "-", "read"), ("15x", "-", "used"), ("3x", "used", "-")],
}


@pytest.mark.parametrize("script", ROWS)
def test_the_audit_shows_the_double_backward_pass_and_waits_for_g(script, tmp_path):
    every = ["--penalty-every", 1] if script == "gan_r3" else []
    done = forked(RUN_AUDIT, path_of(script), *TINY.split(), *every, "--runs-dir", tmp_path)
    assert "Nothing wrong, nothing wasted." in done.stdout
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| `")]
    assert [tuple(cell.strip() for cell in row[1:]) for row in rows] == ROWS[script]
    assert ["(create_graph)" in row[0] for row in rows] == [False, True, False, False]
