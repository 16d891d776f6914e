"""CycleGAN's networks are those published, and the pool of past fakes keeps what it holds."""

import pytest
import torch
from torch import nn

from common.cyclegan_models import ImagePool, patch_discriminator, resnet_generator


def test_the_published_networks_have_the_published_number_of_parameters():
    assert sum(p.numel() for p in resnet_generator(3).parameters()) == 11_378_179
    assert sum(p.numel() for p in patch_discriminator(3).parameters()) == 2_764_737


@pytest.mark.numerics
@pytest.mark.parametrize(("halvings", "pixels"), [(3, 70), (2, 34), (1, 16)])
def test_a_logit_sees_as_many_pixels_as_published(halvings, pixels):
    """By the gradient of one logit at the image, with the norm taken out: its mean takes in every pixel a little."""
    torch.manual_seed(0)
    layers = patch_discriminator(1, width=2, halvings=halvings)
    network = nn.Sequential(*(layer for layer in layers if not isinstance(layer, nn.InstanceNorm2d))).double()
    image = torch.randn(1, 1, 128, 128, dtype=torch.float64, requires_grad=True)
    logits = network(image)
    (gradient,) = torch.autograd.grad(logits[0, 0, logits.shape[2] // 2, logits.shape[3] // 2], image)
    for axis in (2, 3):
        seen = gradient.abs().sum(5 - axis).flatten().nonzero()
        assert seen.max() - seen.min() + 1 == pixels


@pytest.mark.numerics
def test_weights_are_drawn_from_a_normal_distribution_of_0_02_and_biases_are_0():
    torch.manual_seed(0)
    for network in (resnet_generator(3, width=16, blocks=2), patch_discriminator(3, width=16)):
        parameters = dict(network.named_parameters())
        weights = torch.cat([p.detach().flatten() for name, p in parameters.items() if name.endswith("weight")])
        assert all((p == 0).all() for name, p in parameters.items() if name.endswith("bias"))
        assert abs(weights.mean()) < 4 * 0.02 / len(weights) ** 0.5
        assert abs(weights.std() / 0.02 - 1) < 4 / (2 * len(weights)) ** 0.5


def test_what_a_pool_returns_and_keeps_has_no_graph():
    pool = ImagePool(3)
    assert not pool.exchange(torch.ones(5, 1, 2, 2, requires_grad=True) * 2).requires_grad
    assert not any(image.requires_grad for image in pool.images)


@pytest.mark.parametrize("held", [0, 3, 5])
def test_a_pool_goes_on_from_its_state_though_the_batch_is_overwritten(held):
    pool, again, fakes = ImagePool(5), ImagePool(5), torch.ones(held, 1, 2, 2)
    if held:
        pool.exchange(fakes)
        fakes.zero_()
        assert torch.stack(pool.images).equal(torch.ones(held, 1, 2, 2))
    again.load_state_dict(pool.state_dict())
    for seed in range(10):
        fakes, results = torch.rand(5, 1, 2, 2), []
        for one in (pool, again):
            torch.manual_seed(seed)
            results.append(one.exchange(fakes))
        assert results[0].equal(results[1])
