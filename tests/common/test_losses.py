"""The losses are the published ones, and hold where the logits are extreme."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st

from common.losses import (
    discriminator_loss,
    generator_loss,
    least_squares_discriminator_loss,
    least_squares_generator_loss,
)

pytestmark = pytest.mark.numerics
logits = st.lists(st.floats(-15, 15), min_size=1, max_size=8).map(lambda x: torch.tensor(x, dtype=torch.float64))


@given(logits, logits)
@example(torch.tensor([9.0, 15.0]).double(), torch.tensor([-9.0, -15.0]).double())
def test_losses_are_binary_cross_entropy_of_the_sigmoid(real, fake):
    def bce(x, label):
        return F.binary_cross_entropy_with_logits(x, torch.full_like(x, label))

    # For label 0 PyTorch's cross-entropy is the difference of two numbers of up to 15, each with its rounding of 2e-15.
    exact = {"rtol": 1e-12, "atol": 1e-14}
    torch.testing.assert_close(discriminator_loss(real, fake), (bce(real, 1) + bce(fake, 0)) / 2, **exact)
    torch.testing.assert_close(generator_loss(fake), bce(fake, 1), **exact)


def test_losses_by_hand():
    zero = torch.zeros(3)
    assert discriminator_loss(zero, zero).item() == pytest.approx(math.log(2))
    assert generator_loss(zero).item() == pytest.approx(math.log(2))
    assert least_squares_discriminator_loss(torch.tensor([3.0]), torch.tensor([2.0])).item() == (4 + 4) / 2
    assert least_squares_generator_loss(torch.tensor([3.0, 1.0])).item() == 2


@pytest.mark.parametrize("logit", [-1e4, -80.0, 80.0, 1e4])
def test_extreme_logits_give_finite_losses_and_the_right_gradients(logit):
    x = torch.tensor([logit], requires_grad=True)
    loss = generator_loss(x)
    loss.backward()
    assert loss.item() == pytest.approx(max(0.0, -logit), abs=1e-30)
    assert x.grad.item() == pytest.approx(-1.0 if logit < 0 else 0.0, abs=1e-30)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_losses_of_logits_in_16_bits_are_those_of_the_same_numbers_in_float32(dtype):
    x = torch.linspace(-3, 3, 10, dtype=dtype)
    for loss in (generator_loss, least_squares_generator_loss):
        assert loss(x).equal(loss(x.float()))
    for loss in (discriminator_loss, least_squares_discriminator_loss):
        assert loss(x, -x).equal(loss(x.float(), -x.float()))
