"""The networks take the sizes they promise, and no layer looks across the batch."""

import pytest
import torch

from common.models import MODELS, conv

SIZES = [28, 32, 56, 64, 112, 128, 224, 256]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_dcgan_takes_every_promised_size(size, channels):
    generator, discriminator = conv((channels, size, size), z_dim=5, width=4)
    images = generator(torch.randn(2, 5))
    assert images.shape == (2, channels, size, size)
    assert images.abs().max() <= 1
    assert discriminator(images).shape == (2, 1)


@pytest.mark.parametrize("shape", [(1, 27, 27), (1, 28, 32), (1, 14, 14), (1, 16, 16), (1, 448, 448), (3, 512, 512)])
def test_dcgan_refuses_other_sizes_by_name(shape):
    with pytest.raises(ValueError, match="conv takes"):
        conv(shape, z_dim=5)


def test_mlp_has_the_widths_of_the_simple_gan():
    generator, discriminator = MODELS["mlp"]((1, 28, 28), 64)
    assert [tuple(p.shape) for p in generator.parameters() if p.ndim == 2] == [(256, 64), (256, 256), (784, 256)]
    assert [tuple(p.shape) for p in discriminator.parameters() if p.ndim == 2] == [(256, 784), (256, 256), (1, 256)]


@pytest.mark.numerics
@pytest.mark.parametrize("part", ["generator", "discriminator"])
@pytest.mark.parametrize("model", MODELS)
def test_a_sample_does_not_depend_on_the_rest_of_its_batch(model, part):
    torch.manual_seed(0)
    generator, discriminator = (network.double() for network in MODELS[model]((1, 28, 28), 8))
    network, shape = (generator, (8,)) if part == "generator" else (discriminator, (1, 28, 28))
    batch = torch.randn(4, *shape, dtype=torch.float64)
    alone = torch.cat([network(sample[None]) for sample in batch])
    torch.testing.assert_close(network(batch), alone, rtol=1e-12, atol=1e-12)
