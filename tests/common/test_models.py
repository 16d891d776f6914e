"""The networks take the sizes they promise, and no layer looks across the batch."""

import copy

import pytest
import torch
from torch.nn.utils.parametrize import is_parametrized

from common.conditional import ConditionalGenerator, ProjectionDiscriminator, conditional
from common.cyclegan_models import patch_discriminator, resnet_generator
from common.models import MODELS, STYLE, Normalised, Styled, conv

SIZES = [28, 32, 56, 64, 112, 128, 224, 256]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_conv_takes_every_promised_size(size, channels):
    generator, discriminator = conv((channels, size, size), z_dim=5)
    images = generator(torch.randn(2, 5))
    assert images.shape == (2, channels, size, size)
    assert images.abs().max() <= 1
    assert discriminator(images).shape == (2, 1)


@pytest.mark.parametrize("shape", [(1, 27, 27), (1, 28, 32), (1, 14, 14), (1, 16, 16), (1, 448, 448), (3, 512, 512)])
def test_conv_refuses_other_sizes_by_name(shape):
    with pytest.raises(ValueError, match="conv takes"):
        conv(shape, z_dim=5)


@pytest.mark.numerics
@pytest.mark.parametrize("shape", [(16, 4, 3, 3), (64, 768), (1, 64), (30, 7)])
def test_a_normalised_weight_has_singular_values_with_a_root_mean_square_of_one(shape):
    torch.manual_seed(0)
    weight = torch.randn(shape, dtype=torch.float64) * 1e-3
    values = torch.linalg.svdvals(Normalised()(weight).flatten(1))
    assert values.square().mean().item() == pytest.approx(1, rel=1e-12)
    assert torch.autograd.gradcheck(Normalised(), weight[:4, :3].clone().mul(1e3).requires_grad_())


def test_only_a_normalised_discriminator_is_normalised_and_no_pass_changes_it():
    images = torch.randn(3, 1, 28, 28)
    for normalise in (True, False):
        discriminator = conv((1, 28, 28), 8, normalise=normalise)[1]
        layers = [layer for layer in discriminator if hasattr(layer, "weight")]
        assert [is_parametrized(layer) for layer in layers] == [normalise] * 4
        state = copy.deepcopy(discriminator.state_dict())
        assert discriminator(images).equal(discriminator(images))
        assert all(value.equal(state[name]) for name, value in discriminator.state_dict().items())


@pytest.mark.parametrize("scales", [False, True])
def test_a_style_shifts_each_channel_after_its_group_has_mean_0_and_deviation_1_and_may_scale_it(scales):
    torch.manual_seed(0)
    layer, features = Styled(16, scales).double(), torch.randn(3, 16, 5, 5, dtype=torch.float64)
    style = torch.randn(3, STYLE, dtype=torch.float64)
    change = style @ layer.change.weight.T + layer.change.bias  # of scales, then of shifts
    groups = features.view(3, 2, -1)
    expected = (groups - groups.mean(2, keepdim=True)) / (groups.var(2, correction=0, keepdim=True) + 1e-5).sqrt()
    expected = expected.view(3, 16, 5, 5) * (1 + change[:, :16, None, None] if scales else 1)
    torch.testing.assert_close(layer(features, style), expected + change[:, -16:, None, None], rtol=1e-9, atol=1e-9)
    assert change.shape[1] == (32 if scales else 16)


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (1, 32), (1, 56), (3, 28)])
def test_only_small_grey_images_are_made_without_a_style_that_scales(channels, size):
    styled = [layer for layer in conv((channels, size, size), 8)[0] if isinstance(layer, Styled)]
    numbers = 1 if (channels, size) in [(1, 28), (1, 32)] else 2
    assert {layer.change.out_features // layer.num_channels for layer in styled} == {numbers}


def of_cyclegan(*_):
    return resnet_generator(1, 4, 1), patch_discriminator(1, 4, 2)


@pytest.mark.numerics
@pytest.mark.parametrize("part", ["generator", "discriminator"])
@pytest.mark.parametrize("make", [*MODELS.values(), of_cyclegan])
def test_a_sample_does_not_depend_on_the_rest_of_its_batch(make, part):
    torch.manual_seed(0)
    network = make((1, 28, 28), 8)[part == "discriminator"].double()
    takes_z = part == "generator" and make is not of_cyclegan
    batch = torch.randn(4, *((8,) if takes_z else (1, 28, 28)), dtype=torch.float64)
    alone = torch.cat([network(sample[None]) for sample in batch])
    torch.testing.assert_close(network(batch), alone, rtol=1e-12, atol=1e-12)


def test_a_generator_is_given_its_label_after_the_noise():
    generator = ConditionalGenerator(torch.nn.Identity(), classes=3)
    given = generator(torch.tensor([[0.5, -2.0], [4.0, 1.0]]), torch.tensor([2, 0]))
    assert given.tolist() == [[0.5, -2, 0, 0, 1], [4, 1, 1, 0, 0]]


def test_a_projection_discriminator_adds_the_product_of_its_features_and_the_class():
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 1))
    discriminator = ProjectionDiscriminator(layers, classes=2)
    with torch.no_grad():
        layers[1].weight.copy_(torch.tensor([[1.0, 10.0]]))
        layers[1].bias.fill_(0.5)
        discriminator.embedding.weight.copy_(torch.tensor([[0.0, 0.0], [2.0, 3.0]]))
    images = torch.tensor([[5.0, 7.0], [5.0, 7.0]]).view(2, 1, 1, 2)
    assert discriminator(images, torch.tensor([0, 1])).tolist() == [[75.5], [75.5 + 2 * 5 + 3 * 7]]


@pytest.mark.parametrize("model", MODELS)
def test_what_a_discriminator_knows_of_the_classes_is_normalised_as_its_other_weights_are(model):
    discriminator = conditional(model, (1, 28, 28), z_dim=4, classes=6)[1]
    kinds = torch.nn.Conv2d | torch.nn.Linear | torch.nn.Embedding
    layers = [layer for layer in discriminator.modules() if isinstance(layer, kinds)]
    assert discriminator.embedding in layers
    assert {is_parametrized(layer) for layer in layers} == {model != "mlp"}
