"""CycleGAN's step: every network learns from its own loss, as a reference written with `autograd.grad` has it."""

import copy
import itertools

import pytest
import torch

from common.cyclegan_models import ImagePool, cyclegan_networks
from scripts.cyclegan import train_step, translation_error

LR = 2e-4
ROUNDING = 1e-11  # of ten steps in float64 through instance normalisation, which divides by deviations


def batch(step):
    draws = torch.Generator().manual_seed(step)
    return torch.rand(2, 2, 1, 12, 12, generator=draws, dtype=torch.float64) * 2 - 1


def parameters(*networks):
    return list(itertools.chain(*(network.parameters() for network in networks)))


class Reference:
    """The same update by plain gradient descent, every gradient from `torch.autograd.grad`, and pools of 3."""

    def __init__(self, networks, identity_weight):
        self.networks, self.identity_weight = networks, identity_weight
        self.pools = [], []

    def descend(self, loss, weights):
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= LR * gradient

    def past(self, pool, fakes):
        swaps, places = torch.rand(len(fakes)) < 0.5, torch.randint(3, (len(fakes),))
        shown = list(fakes.detach())
        for i in range(len(fakes)):
            if len(pool) < 3:
                pool.append(shown[i])
            elif swaps[i]:
                shown[i], pool[places[i]] = pool[places[i]], shown[i]
        return torch.stack(shown)

    def step(self, a, b):
        a_to_b, b_to_a, d_a, d_b = self.networks
        fake_b, fake_a = a_to_b(a), b_to_a(b)
        adversarial = ((d_b(fake_b) - 1) ** 2).mean() + ((d_a(fake_a) - 1) ** 2).mean()
        cycle = (b_to_a(fake_b) - a).abs().mean() + (a_to_b(fake_a) - b).abs().mean()
        identity = (a_to_b(b) - b).abs().mean() + (b_to_a(a) - a).abs().mean()
        self.descend(adversarial + 10 * cycle + self.identity_weight * identity, parameters(a_to_b, b_to_a))
        d_loss = sum(
            (((d(real) - 1) ** 2).mean() + (d(self.past(pool, fake)) ** 2).mean()) / 2
            for d, real, pool, fake in zip((d_a, d_b), (a, b), self.pools, (fake_a, fake_b), strict=True)
        )
        self.descend(d_loss, parameters(d_a, d_b))
        result = {"d_loss": d_loss, "loss/adversarial": adversarial, "loss/cycle": cycle}
        return result | ({"loss/identity": identity} if self.identity_weight else {})


@pytest.mark.numerics
@pytest.mark.parametrize("identity_weight", [5.0, 0.0])
def test_weights_losses_and_pools_agree_with_the_reference_in_float64(identity_weight):
    torch.manual_seed(0)
    networks = [network.double() for network in cyclegan_networks((1, 12, 12), width=4, blocks=1, halvings=2)]
    reference = Reference(copy.deepcopy(networks), identity_weight)
    pools, passes = (ImagePool(3), ImagePool(3)), []
    networks[0].register_forward_pre_hook(lambda network, given: passes.append(len(given[0])))
    optimizers = [torch.optim.SGD(parameters(*pair), lr=LR) for pair in (networks[:2], networks[2:])]
    for step in range(10):
        torch.manual_seed(step)
        result = train_step(*networks, *optimizers, *pools, *batch(step), identity_weight=identity_weight)
        torch.manual_seed(step)
        expected = reference.step(*batch(step))
        assert result.keys() == expected.keys()
        assert not any(value.requires_grad for value in result.values())
        for key, value in expected.items():
            torch.testing.assert_close(result[key], value.detach(), rtol=ROUNDING, atol=0)
    assert passes == ([4, 2] if identity_weight else [2, 2]) * 10
    ours, theirs = (
        torch.cat([p.flatten() for p in parameters(*all_four)]) for all_four in (networks, reference.networks)
    )
    assert (ours - theirs).abs().max() <= ROUNDING * theirs.abs().max()
    for pool, held in zip(pools, reference.pools, strict=True):
        torch.testing.assert_close(torch.stack(pool.images), torch.stack(held), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.numerics
def test_the_error_is_in_units_of_brightness_over_all_images():
    black, white = (torch.full((101, 1, 2, 2), shade, dtype=torch.uint8) for shade in (0, 255))
    assert translation_error(torch.nn.Identity(), black, white) == 1
    assert translation_error(torch.zeros_like, black, white) == 0.5
    white[100] = 0
    torch.testing.assert_close(translation_error(torch.nn.Identity(), black, white), torch.tensor(100 / 101))
