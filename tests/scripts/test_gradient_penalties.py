"""Gradient penalties are what their formulas say and reach D's weights alone."""

import copy
from itertools import chain, pairwise

import pytest
import torch
from helpers import call, module_of
from hypothesis import given
from hypothesis import strategies as st
from reference import lengths
from test_any_networks import audio, images, networks, vectors
from torch import nn

from common.losses import (
    approximate_penalty,
    interpolation_penalty,
    relativistic_loss,
    sample_gradients,
    zero_centred_penalty,
)
from common.models import conv

pytestmark = pytest.mark.numerics
N = 3
SCRIPTS = ["gan_r3", "gan_wgan_gp"]
TINY = "--model mlp --image-size 8 --batch-size 4 --device cpu"


SAMPLES = {vectors: (5,), audio: (2, 8), images: (1, 8, 8)}
LOGITS = {
    "(N, 1)": lambda: [],
    "(N,)": lambda: [nn.Flatten(0)],
    "(N, 2, 1)": lambda: [nn.Linear(1, 2), nn.Unflatten(1, (2, 1))],
}


def zero_centred(discriminator, real, fake, mix):
    real = real.detach().requires_grad_()
    return zero_centred_penalty(discriminator(real), real)


PENALTIES = {"zero-centred": zero_centred, "between": interpolation_penalty}


def drawn(shape):
    """Real and fake samples, and a mix."""
    torch.manual_seed(1)
    return torch.randn(N, *shape).double(), torch.randn(N, *shape).double(), torch.rand(N).double()


@pytest.mark.parametrize("logits", LOGITS)
@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_and_its_gradient_are_those_of_one_sample_at_a_time(name, make, logits):
    discriminator = nn.Sequential(*networks(make)[1], *LOGITS[logits]()).double()
    real, fake, mix = drawn(SAMPLES[make])
    between = torch.stack([m * x + (1 - m) * y for m, x, y in zip(mix, real, fake, strict=True)])
    norms = lengths(discriminator, between if name == "between" else real)
    expected = ((norms - 1) ** 2 if name == "between" else norms**2).mean()
    found = PENALTIES[name](discriminator, real, fake, mix)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    weights = list(discriminator.parameters())
    ours, theirs = (torch.autograd.grad(loss, weights, materialize_grads=True) for loss in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)


def test_the_penalties_of_a_linear_discriminator_by_hand():
    """D(x) = 3 x_1 + 4 x_2 has the slope (3, 4) everywhere, of length 5."""
    linear = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[3.0, 4.0]]))
    real, fake, mix = drawn((2,))
    for name, penalty, gradient in (("zero-centred", 25, [6, 8]), ("between", 16, [4.8, 6.4])):
        linear.zero_grad()
        found = PENALTIES[name](linear, real, fake, mix)
        found.backward()
        assert found.item() == pytest.approx(penalty, rel=1e-12)  # |w|^2, or (|w| - 1)^2
        assert linear.weight.grad[0].tolist() == pytest.approx(gradient, rel=1e-12)  # 2 w, or 2 (|w| - 1) w / |w|


def test_a_slope_of_zero_has_a_finite_penalty_and_gradient():
    linear = nn.Linear(2, 1).double()
    nn.init.zeros_(linear.weight)
    for penalty in PENALTIES.values():
        linear.zero_grad()
        penalty(linear, *drawn((2,))).backward()
        assert linear.weight.grad.tolist() == [[0, 0]]


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
    interpolation_penalty(discriminator, real, fake, torch.linspace(0, 1, 64))
    assert seen[1][0].equal(fake[0])
    assert seen[1][-1].equal(real[-1])


def test_logits_that_would_broadcast_into_other_pairs_are_refused():
    with pytest.raises(ValueError, match=r"pairs logits, but got \(3, 1\) and \(3,\)"):
        relativistic_loss(torch.zeros(3, 1), torch.zeros(3))


def test_the_relativistic_loss_by_hand_and_for_extreme_logits():
    assert relativistic_loss(torch.zeros(3), torch.zeros(3)).item() == pytest.approx(0.693147, rel=1e-5)
    assert relativistic_loss(torch.tensor([-1e4]), torch.tensor([1e4])).item() == 2e4
    assert relativistic_loss(torch.tensor([1e4]), torch.tensor([-1e4])).item() == 0


def test_the_slopes_of_half_precision_logits_are_float32():
    real = torch.randn(N, 5).bfloat16().requires_grad_()
    assert sample_gradients(networks(vectors)[1].bfloat16()(real), real).dtype == torch.float32


@pytest.mark.parametrize("script", SCRIPTS)
def test_with_a_weight_of_zero_no_penalty_is_computed(script):
    pair = networks(vectors)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    given = *pair, *optimizers, torch.randn(N, 5), torch.randn(N, 4)
    assert not any("penalty" in name for name in module_of(script).train_step(*given, penalty_weight=0.0))


@pytest.mark.parametrize("script", SCRIPTS)
def test_batch_normalisation_in_the_discriminator_is_refused_before_a_weight_is_changed(script):
    pair = networks(vectors)[0], nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    before = copy.deepcopy([list(network.parameters()) for network in pair])
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    with pytest.raises(ValueError, match="depends on the other samples"):
        module_of(script).train_step(*pair, *optimizers, torch.randn(N, 5), torch.randn(N, 4))
    for network, weights in zip(pair, before, strict=True):
        assert all(p.equal(q) for p, q in zip(network.parameters(), weights, strict=True))


def given_to_the_step(script, arguments, folder, monkeypatch):
    """Return what a run of six steps gave its step beside networks, optimizers, images and noise."""
    module, seen = module_of(script), []
    train_step = module.train_step

    def watched(*given):
        seen.append(given[6:])
        return train_step(*given)

    monkeypatch.setattr(module, "train_step", watched)
    call(script, *TINY.split(), *arguments.split(), "--steps", 6, "--runs-dir", folder)
    return seen


def test_a_lazy_penalty_comes_every_so_many_steps_at_so_many_times_the_weight(tmp_path, monkeypatch):
    seen = given_to_the_step("gan_r3", "--penalty-every 3 --penalty-weight 0.5", tmp_path, monkeypatch)
    assert [given[0] for given in seen] == [0.0, 0.0, 1.5] * 2


def test_the_generator_learns_after_so_many_critic_steps_at_points_drawn_anew(tmp_path, monkeypatch):
    seen = given_to_the_step("gan_wgan_gp", "--critic-steps 3 --penalty-weight 2", tmp_path, monkeypatch)
    assert [given[:2] for given in seen] == [(False, 2.0), (False, 2.0), (True, 2.0)] * 2
    assert len({tuple(mix.tolist()) for _, _, mix in seen}) == 6
    assert all(mix.shape == (4,) for _, _, mix in seen)


def test_a_step_without_the_generator_leaves_it_and_its_optimizer_alone():
    generator, discriminator = networks(images)
    before = copy.deepcopy(generator.state_dict())
    optimizers = [torch.optim.Adam(network.parameters()) for network in (generator, discriminator)]
    step = module_of("gan_wgan_gp").train_step
    results = step(generator, discriminator, *optimizers, torch.rand(N, 1, 8, 8), torch.randn(N, 4), False)
    assert set(results) == {"d_loss", "score/real", "score/fake", "penalty"}
    assert not optimizers[0].state
    assert all(p.grad is None and p.equal(before[name]) for name, p in generator.named_parameters())


@pytest.mark.parametrize(
    ("script", "steps", "rows"),
    [
        ("gan_r3", 3, [("6x", "-", "read"), ("3x", "-", "used"), ("3x", "used", "-")]),
        ("gan_wgan_gp", 5, [("5x", "-", "read"), ("5x", "-", "used"), ("1x", "used", "-")]),
    ],
)
def test_the_audit_shows_the_double_backward_pass_and_waits_for_g(script, steps, rows, tmp_path, capsys):
    call(script, *TINY.split(), "--audit", "--steps", 7, "--runs-dir", tmp_path)
    told = capsys.readouterr().out
    assert f"Gradients of the first {steps} steps:\n\nNothing wrong, nothing wasted." in told
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines() if line.startswith("| `")]
    assert [tuple(row[1:]) for row in table] == rows
    assert ["(create_graph)" in row[0] for row in table] == [True, False, False]


class OfTwoScales(nn.Linear):
    """A discriminator that returns a list, as one of several scales does."""

    def forward(self, samples):
        return [super().forward(samples)] * 2


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_discriminator_that_returns_a_list_is_told_what_to_return(script):
    pair = networks(vectors)[0], OfTwoScales(5, 1)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    with pytest.raises(ValueError, match=r"must give logits \(N, \.\.\.\) for N samples, not a list"):
        module_of(script).train_step(*pair, *optimizers, torch.randn(N, 5), torch.randn(N, 4))


@given(st.integers(0, 10**6), st.integers(1, 6), st.lists(st.integers(1, 6), max_size=2))
def test_the_approximate_penalty_tends_to_the_exact_one(seed, size, widths):
    """Its mean over noise of unit covariance; here over the unit vectors, each times the root of their number."""
    torch.manual_seed(seed)
    layers = [[nn.Linear(narrow, wide), nn.Tanh()] for narrow, wide in pairwise([size, *widths])]
    discriminator = nn.Sequential(*chain(*layers), nn.Linear([size, *widths][-1], 1)).double()
    samples = torch.randn(N, size).double().requires_grad_()
    logits = discriminator(samples)
    exact = zero_centred_penalty(logits, samples)
    for sigma in (1e-3, 1e-6):
        noises = size**0.5 * torch.eye(size).double()[:, None].expand(-1, N, -1)
        found = sum(approximate_penalty(discriminator, samples, logits, sigma, noise) for noise in noises) / size
        # D's second derivative is at most some 30, so what follows the first order is at most 30 sigma |dD/dx|; the
        # logits, of about 1, are rounded to 1e-16.
        assert abs(found - exact) <= 100 * (sigma + 1e-15 / sigma) * (1 + exact)


def test_the_approximate_penalty_and_its_gradient_by_hand():
    """D(x) = 3 x_1 + 4 x_2: with the noise (1, 2) its logit changes by 11 sigma, whose square has the gradient 22 n."""
    linear = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[3.0, 4.0]]))
    samples, noise = torch.tensor([[0.5, -2.0]]).double(), torch.tensor([[1.0, 2.0]]).double()
    found = approximate_penalty(linear, samples, linear(samples), 0.5, noise)
    found.backward()
    assert found.item() == 11**2
    assert linear.weight.grad.tolist() == [[22, 44]]


def test_several_logits_of_a_sample_count_as_their_sum_in_both_penalties():
    discriminator = nn.Linear(2, 3, bias=False).double()
    samples, noise = torch.randn(2, N, 2).double()
    summed = (noise @ discriminator.weight.sum(0)).square().mean()
    found = approximate_penalty(discriminator, samples, discriminator(samples), 0.5, noise)
    torch.testing.assert_close(found, summed, rtol=1e-12, atol=0)


def test_noise_that_is_not_given_is_drawn_and_samples_get_no_gradient():
    discriminator, samples = networks(vectors)[1].double(), drawn((5,))[0].requires_grad_()
    logits = discriminator(samples)
    torch.manual_seed(3)
    found = approximate_penalty(discriminator, samples, logits.detach())
    torch.manual_seed(3)
    noise = torch.randn(N, 5, dtype=torch.float64)
    assert found == approximate_penalty(discriminator, samples, logits, noise=noise)
    found.backward()
    assert samples.grad is None


def test_the_approximate_penalty_holds_in_the_precisions_that_its_docstring_names():
    """Of a D of convolutions; the noise is the same, so only the rounding differs."""
    torch.manual_seed(0)
    discriminator, samples = conv((1, 28, 28), 8)[1], torch.rand(64, 1, 28, 28) * 2 - 1
    noise = torch.randn_like(samples)

    def ratio(sigma, precision):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            found = approximate_penalty(discriminator, samples, discriminator(samples), sigma, noise)
        exact = copy.deepcopy(discriminator).double()
        expected = approximate_penalty(exact, samples.double(), exact(samples.double()), sigma, noise.double())
        return found.item() / expected.item()

    assert ratio(1e-5, "float32") == pytest.approx(1, abs=0.1)
    assert ratio(0.03, "bfloat16") == pytest.approx(1, abs=0.3)
    assert ratio(1e-3, "bfloat16") > 2


def test_a_step_with_the_approximate_penalty_is_the_exact_one_s_but_for_the_penalties():
    pair = networks(vectors)
    noise = torch.randn(2, N, 5).double()
    real, z = drawn((5,))[0], torch.randn(N, 4).double()
    results = []
    for penalty in ("exact", "approximate"):
        generator, discriminator = (copy.deepcopy(network).double() for network in pair)
        optimizers = [torch.optim.SGD(network.parameters(), lr=0.0) for network in (generator, discriminator)]
        step = module_of("gan_r3").train_step
        results.append(step(generator, discriminator, *optimizers, real, z, 2.0, penalty, noise))
    exact, approximate = results
    fake = pair[0].double()(z).detach()
    judge = pair[1].double()
    for name, samples, drawn_noise in (("real", real, noise[0]), ("fake", fake, noise[1])):
        expected = approximate_penalty(judge, samples, judge(samples), noise=drawn_noise)
        torch.testing.assert_close(approximate[f"penalty/{name}"], expected.detach(), rtol=1e-9, atol=0)
    losses = [r["d_loss"] - r["penalty/real"] - r["penalty/fake"] for r in results]
    torch.testing.assert_close(*losses, rtol=1e-9, atol=1e-12)
    assert exact["g_loss"] == approximate["g_loss"]
