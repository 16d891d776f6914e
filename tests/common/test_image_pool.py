"""The pool returns new fakes and old ones as published: half of each, and every image goes somewhere."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.images.pool import ImagePool


def numbered(first, count):
    """Images that can be told apart: all pixels of one are its number."""
    return torch.arange(first, first + count).float()[:, None, None, None].expand(count, 1, 2, 2)


def numbers(images):
    return [int(image[0, 0, 0]) for image in images]


def test_a_pool_that_fills_returns_what_it_is_given():
    pool = ImagePool(5)
    assert numbers(pool.exchange(numbered(0, 3))) == [0, 1, 2]
    assert numbers(pool.exchange(numbered(3, 2))) == [3, 4]
    assert numbers(pool.images) == [0, 1, 2, 3, 4]


@given(size=st.integers(1, 6), batches=st.lists(st.integers(1, 9), max_size=8), seed=st.integers(0, 2**32 - 1))
def test_once_full_no_image_is_lost_or_doubled_and_the_newest_may_come_back_at_once(size, batches, seed):
    torch.manual_seed(seed)
    pool, first = ImagePool(size), size
    pool.exchange(numbered(0, size))
    for count in batches:
        before = Counter(numbers(pool.images)) + Counter(range(first, first + count))
        returned = numbers(pool.exchange(numbered(first, count)))
        assert Counter(returned) + Counter(numbers(pool.images)) == before
        for place, image in enumerate(returned):  # in order: none before its time
            assert image <= first + place
        first += count


def published(images, pool, size, swaps, places):
    """The rule of Zhu et al. (2017), one image at a time, on numbers."""
    returned = []
    for image, swap, place in zip(images, swaps, places, strict=True):
        if len(pool) < size:
            pool.append(image)
            returned.append(image)
        elif swap:
            returned.append(pool[place])
            pool[place] = image
        else:
            returned.append(image)
    return returned


@pytest.mark.parametrize("batch", [1, 4])
def test_every_decision_is_the_published_one(batch):
    pool, expected = ImagePool(7), []
    for first in range(0, 40 * batch, batch):
        torch.manual_seed(first)
        swaps, places = (torch.rand(batch) < 0.5).tolist(), torch.randint(7, (batch,)).tolist()
        torch.manual_seed(first)
        returned = numbers(pool.exchange(numbered(first, batch)))
        assert returned == published(range(first, first + batch), expected, 7, swaps, places)
        assert numbers(pool.images) == expected


def test_half_of_the_images_are_swapped_and_every_place_as_often():
    torch.manual_seed(0)
    pool = ImagePool(50)
    pool.exchange(numbered(0, 50))
    swapped, places = 0, Counter()
    for first in range(50, 10_050, 100):
        before = numbers(pool.images)
        returned = numbers(pool.exchange(numbered(first, 100)))
        swapped += sum(image != first + place for place, image in enumerate(returned))
        places.update(place for place, image in enumerate(before) if image in returned)
    assert abs(swapped / 10_000 - 0.5) < 4 * 0.5 / 100
    kept = (1 - 0.5 / 50) ** 100  # the chance that no image of a batch takes a given place
    for place in range(50):
        assert abs(places[place] / 100 - (1 - kept)) < 4 * (kept * (1 - kept) / 100) ** 0.5


def test_a_pool_keeps_its_images_though_the_batch_is_overwritten():
    pool, fakes = ImagePool(2), numbered(0, 2).clone()
    pool.exchange(fakes)
    fakes.zero_()
    assert numbers(pool.images) == [0, 1]


@pytest.mark.parametrize("held", [0, 3, 5])
def test_a_pool_goes_on_from_its_state(held):
    pool, again = ImagePool(5), ImagePool(5)
    if held:
        pool.exchange(numbered(0, held))
    again.load_state_dict(pool.state_dict())
    for first in range(10, 60, 5):
        results = []
        for one in (pool, again):
            torch.manual_seed(first)
            results.append(one.exchange(numbered(first, 5)))
        assert results[0].equal(results[1])
