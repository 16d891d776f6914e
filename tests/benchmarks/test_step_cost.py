"""Costs are counted exactly, the same on every run."""

import torch
from torch import nn

from scripts.benchmarks.step_cost import count_flops, layer_flops


def test_a_matrix_product_costs_two_flops_for_each_multiplication():
    assert count_flops(lambda: torch.ones(2, 3) @ torch.ones(3, 5)) == 2 * 2 * 3 * 5


def test_layers_are_counted_in_the_order_of_the_forward_pass_however_deep_they_lie():
    network = nn.Sequential(nn.Flatten(), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(12, 5))), nn.Linear(5, 7))
    assert layer_flops(network, torch.ones(2, 3, 4)) == [(2 * 2 * 12 * 5, 0), (2 * 2 * 5 * 7, 0)]


def test_a_second_derivative_of_a_strided_convolution_computes_bigger_filters_and_cuts_them():
    """Filters of 3x3 at stride 2 leave a row and a column of 14x14 pixels out; those of 4x4 do not."""
    images = torch.zeros(2, 3, 14, 14)
    for side, cut_off in ((3, 16 / 9 - 1), (4, 0)):
        network = nn.Sequential(nn.Conv2d(3, 4, side, stride=2, padding=1), nn.Flatten(), nn.Linear(4 * 49, 5))
        (first, spare), (_, spare_of_linear) = layer_flops(network, images)
        assert (spare, spare_of_linear) == (round(first * cut_off), 0)


def test_flops_are_counted_where_a_leaf_is_differentiated_through_modules():
    linear, leaf = nn.Linear(3, 1), torch.ones(2, 3, requires_grad=True)
    assert count_flops(lambda: torch.autograd.grad(linear(leaf).sum(), leaf)) == 2 * 2 * 2 * 3
