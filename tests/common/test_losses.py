"""Losses hold where logits are extreme and in 16 bits; autograd sees a step of `fused_adam`; a rate falls to zero."""

import pytest
import torch

from common.cyclegan_models import least_squares_discriminator_loss, least_squares_generator_loss
from common.losses import discriminator_loss, generator_loss
from common.optimizers import fused_adam, linear_decay


@pytest.mark.numerics
@pytest.mark.parametrize("logit", [-1e4, -80.0, 80.0, 1e4])
def test_extreme_logits_give_finite_losses_and_the_right_gradients(logit):
    x = torch.tensor([logit], requires_grad=True)
    loss = generator_loss(x)
    loss.backward()
    assert loss.item() == pytest.approx(max(0.0, -logit), abs=1e-30)
    assert x.grad.item() == pytest.approx(-1.0 if logit < 0 else 0.0, abs=1e-30)
    assert discriminator_loss(x, -x).item() == pytest.approx(loss.item(), rel=1e-6)


@pytest.mark.numerics
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_losses_of_logits_in_16_bits_are_those_of_the_same_numbers_in_float32(dtype):
    x = torch.linspace(-3, 3, 10, dtype=dtype)
    for loss in (generator_loss, least_squares_generator_loss):
        assert loss(x).equal(loss(x.float()))
    for loss in (discriminator_loss, least_squares_discriminator_loss):
        assert loss(x, -x).equal(loss(x.float(), -x.float()))


def test_a_step_of_fused_adam_raises_the_version_of_the_weights_of_every_group():
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = fused_adam([{"params": weights[:1]}, {"params": weights[1:]}], 1e-3, (0.0, 0.9))
    (weights[0].sum() + weights[1].sum()).backward()
    optimizer.step()
    assert [weight._version > 0 for weight in weights] == [True, True, False]  # the last one has no gradient


@pytest.mark.parametrize(
    ("steps", "start", "factors"), [(6, 3, [1, 1, 1, 1, 2 / 3, 1 / 3, 0]), (2, 2, [1, 1]), (2, 0, [1, 0.5, 0, 0])]
)
def test_a_rate_falls_linearly_to_zero_once_so_many_steps_are_done(steps, start, factors):
    assert [linear_decay(steps, start)(done) for done in range(len(factors))] == factors
