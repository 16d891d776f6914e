"""A step of `fused_adam` is seen by PyTorch's check of what a graph has saved, and a rate falls as it says."""

import pytest
import torch

from common.optimizers import fused_adam, linear_decay


def test_a_step_of_fused_adam_raises_the_version_of_the_weights_of_every_group():
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = fused_adam([{"params": weights[:1]}, {"params": weights[1:]}], 1e-3, (0.0, 0.9))
    (weights[0].sum() + weights[1].sum()).backward()
    optimizer.step()
    assert [weight._version > 0 for weight in weights] == [True, True, False]  # the last one has no gradient


@pytest.mark.parametrize(
    ("steps", "start", "factors"), [(6, 3, [1, 1, 1, 1, 2 / 3, 1 / 3, 0]), (2, 2, [1, 1]), (2, 0, [1, 0.5, 0])]
)
def test_a_rate_falls_linearly_to_zero_once_so_many_steps_are_done(steps, start, factors):
    assert [linear_decay(steps, start)(done) for done in range(len(factors))] == factors
