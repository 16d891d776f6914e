"""Costs are counted exactly, the same on every run."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from scripts.benchmarks.step_cost import LiveTensors, count_flops, layer_flops


def test_a_matrix_product_costs_two_flops_for_each_multiplication():
    assert count_flops(lambda: torch.ones(2, 3) @ torch.ones(3, 5)) == 2 * 2 * 3 * 5


def test_layers_are_counted_in_the_order_of_the_forward_pass_however_deep_they_lie():
    network = nn.Sequential(nn.Flatten(), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(12, 5))), nn.Linear(5, 7))
    assert layer_flops(network, torch.ones(2, 3, 4)) == [(2 * 2 * 12 * 5, 0), (2 * 2 * 5 * 7, 0)]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_the_peak_is_the_most_bytes_alive_at_once(sizes):
    with LiveTensors() as live:
        kept = [torch.empty(size) for size in sizes]
        together = live.bytes
        del kept
        alone = [torch.empty(size).numel() for size in sizes]
    assert together == live.peak == 4 * sum(sizes)
    assert alone == sizes
    assert live.bytes == 0


def test_a_storage_counts_once_and_until_its_last_view_is_gone():
    before = torch.empty(10)
    with LiveTensors([before, before[2:]]) as live:
        view = torch.empty(1000).view(10, 100)[3]
        view.add_(1)
        assert live.bytes == 40 + 4000
        del view
        assert live.bytes == 40
    assert live.peak == 40 + 4000


def test_what_autograd_keeps_for_the_backward_pass_is_alive():
    x = torch.ones(1000, requires_grad=True)
    with LiveTensors([x]) as live:
        y = x.exp().sum()  # keeps exp(x)
        assert live.bytes == 4000 + 4000 + 4
        y.backward()
        assert live.bytes == 4000 + 4000 + 4  # exp(x) is gone, x.grad is there


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
