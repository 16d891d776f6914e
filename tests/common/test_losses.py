"""The losses are the published ones, and hold where the logits are extreme."""

import pytest
import torch

from common.losses import (
    discriminator_loss,
    generator_loss,
    least_squares_discriminator_loss,
    least_squares_generator_loss,
)

pytestmark = pytest.mark.numerics


@pytest.mark.parametrize("logit", [-1e4, -80.0, 80.0, 1e4])
def test_extreme_logits_give_finite_losses_and_the_right_gradients(logit):
    x = torch.tensor([logit], requires_grad=True)
    loss = generator_loss(x)
    loss.backward()
    assert loss.item() == pytest.approx(max(0.0, -logit), abs=1e-30)
    assert x.grad.item() == pytest.approx(-1.0 if logit < 0 else 0.0, abs=1e-30)
    assert discriminator_loss(x, -x).item() == pytest.approx(loss.item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_losses_of_logits_in_16_bits_are_those_of_the_same_numbers_in_float32(dtype):
    x = torch.linspace(-3, 3, 10, dtype=dtype)
    for loss in (generator_loss, least_squares_generator_loss):
        assert loss(x).equal(loss(x.float()))
    for loss in (discriminator_loss, least_squares_discriminator_loss):
        assert loss(x, -x).equal(loss(x.float(), -x.float()))
