"""Augmentation of what D sees, by hand: colours, shift, cut-out and mirror, and the numbers that each image has."""

from itertools import combinations
from unittest import mock

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck

from common.augment import NUMBERS, Augmented, change_colours, shift_and_cut

pytestmark = pytest.mark.numerics


class Copy(nn.Module):
    """A discriminator whose logits are what it sees."""

    def forward(self, images, *labels):
        return images if not labels else (images, *labels)


def seen(images, rows, **parts):
    """What D sees of images, if it draws a row of numbers for each."""
    with mock.patch.object(torch, "rand", lambda count, numbers, device: torch.tensor(rows)[:count, :numbers]):
        return Augmented(Copy(), **parts)(images)


def test_brightness_saturation_and_contrast_by_hand():
    pixels = torch.tensor([[[[1.0, 0.0]], [[0.0, 0.0]], [[0.5, 0.0]]]])  # (1, 3, 1, 2): greys of 0.5 and 0, mean 0.25

    def changed(*draws):
        return change_colours(pixels, torch.tensor([draws]))[0, :, 0].T.tolist()

    assert changed(0.5, 0.5, 0.5) == [[1, 0, 0.5], [0, 0, 0]]
    assert changed(0.75, 0.5, 0.5) == [[1.25, 0.25, 0.75], [0.25, 0.25, 0.25]]
    assert changed(0.5, 0, 0.5) == [[0.5, 0.5, 0.5], [0, 0, 0]]
    assert changed(0.5, 0.75, 0.5) == [[1.25, -0.25, 0.5], [0, 0, 0]]
    assert changed(0.5, 0.5, 0) == [[0.625, 0.125, 0.375], [0.125, 0.125, 0.125]]
    # All three: saturation takes the pixels to (1.25, -0.25, 0.5) and 0, contrast to half the way from the mean of
    # 0.25, (0.75, 0, 0.375) and 0.125, brightness adds 0.25.
    assert changed(0.75, 0.75, 0) == [[1, 0.25, 0.625], [0.375, 0.375, 0.375]]
    grey = torch.tensor([[[[1.0, 0.0]]]])  # of one channel, saturation changes nothing
    for saturation in (0.0, 0.5, 0.75):
        assert change_colours(grey, torch.tensor([[0.5, saturation, 0.0]])).tolist() == [[[[0.75, 0.25]]]]


def test_a_shift_and_a_cut_by_hand():
    image = torch.arange(1.0, 17).view(1, 1, 4, 4)  # shifts of -1, 0 and 1, and a cut of 2x2 pixels

    def moved(*draws):
        return shift_and_cut(image, torch.tensor([draws]))[0, 0].tolist()

    # The first pixel of the cut is floor(5 * draw) - 1, of a side of 4.
    assert moved(0.5, 0.5, 0.0, 0.0) == [[0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
    assert moved(0.5, 0.5, 0.4, 0.9) == [[1, 2, 3, 4], [5, 6, 7, 0], [9, 10, 11, 0], [13, 14, 15, 16]]
    assert moved(0.9, 0.5, 0.0, 0.0) == [[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert moved(0.0, 0.5, 0.9, 0.9) == [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16], [0, 0, 0, 0]]
    assert moved(0.9, 0.0, 0.4, 0.4) == [[0, 0, 0, 0], [2, 0, 0, 0], [6, 0, 0, 0], [10, 11, 12, 0]]


@pytest.mark.parametrize("size", [28, 64, 256])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_ends_of_the_numbers_shift_by_an_eighth_and_cut_a_half_in_any_memory_format(size, channels):
    images = torch.rand(3, channels, size, size) + 1
    least, most, middle = [0.0] * 4, [1 - 2**-24] * 4, [0.5, 0.5, 0.5, 0.5]
    found = shift_and_cut(images, torch.tensor([least, most, middle]))
    longest, cut = {28: (4, 14), 64: (8, 32), 256: (32, 128)}[size]
    expected = torch.zeros(3, channels, size, size)
    expected[0, :, :-longest, :-longest] = images[0, :, longest:, longest:]
    expected[0, :, : cut // 2, : cut // 2] = 0
    expected[1, :, longest:, longest:] = images[1, :, :-longest, :-longest]
    expected[1, :, -(cut // 2) :, -(cut // 2) :] = 0
    expected[2] = images[2]
    expected[2, :, size // 2 - cut // 2 : size // 2 + cut // 2, size // 2 - cut // 2 : size // 2 + cut // 2] = 0
    assert found.equal(expected)
    rows = torch.rand(3, NUMBERS).tolist()
    for other in (images.contiguous(memory_format=torch.channels_last), images.transpose(2, 3).clone().transpose(2, 3)):
        assert seen(other, rows, mirror=True).equal(seen(images, rows, mirror=True))
    assert seen(images[:0], rows, mirror=True).shape == (0, channels, size, size)


def test_each_image_of_each_call_has_numbers_of_its_own_which_the_seed_fixes_and_labels_go_through():
    images, rows = torch.rand(2, 3, 8, 8), torch.rand(2, NUMBERS).tolist()
    assert seen(images, rows)[1:].equal(seen(images[1:], rows[1:]))
    flipped = seen(images, [[0.0] * 7 + [0.49], [0.0] * 7 + [0.5]], augment=False, mirror=True)
    assert flipped.equal(torch.stack([images[0], images[1].flip(2)]))
    judge, labels, same = Augmented(Copy()), torch.tensor([3, 4]), images[[0, 0]]
    assert judge(images, labels)[1] is labels
    torch.manual_seed(5)
    first, second = judge(same), judge(same)
    assert not any(one.equal(other) for one, other in combinations([*first, *second], 2))
    torch.manual_seed(5)
    assert judge(same).equal(first)


@pytest.mark.parametrize("changes", [(True, False), (False, True)])
def test_samples_that_are_no_images_are_refused(changes):
    with pytest.raises(ValueError, match=r"are for images \(N, C, H, W\), not \[3, 5\]"):
        Augmented(nn.Linear(5, 1), *changes)(torch.rand(3, 5))
    assert Augmented(nn.Linear(5, 1), augment=False)(torch.rand(3, 5)).shape == (3, 1)


def test_without_a_change_it_draws_nothing_and_shows_the_images_themselves():
    images, before = torch.rand(2, 3, 8, 8), torch.get_rng_state()
    assert Augmented(Copy(), augment=False)(images) is images
    assert torch.get_rng_state().equal(before)


def test_it_is_differentiable_twice_and_its_weights_and_state_are_those_of_the_discriminator():
    bare = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8, 1)).double()
    judge = Augmented(bare, mirror=True)
    images = torch.rand(2, 3, 4, 4, dtype=torch.float64, requires_grad=True)

    def judged(images):
        torch.manual_seed(0)
        return judge(images)

    assert gradcheck(judged, images)
    assert gradgradcheck(judged, images)
    assert [*judge.parameters()] == [*bare.parameters()]
    assert not [*judge.buffers()]
