"""The pool returns new fakes and old ones as published."""

import pytest
import torch

from common.cyclegan_models import ImagePool


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


def test_a_state_of_more_images_than_the_pool_has_room_for_is_refused():
    pool = ImagePool(5)
    pool.exchange(numbered(0, 5))
    with pytest.raises(ValueError, match="5 images for a pool of 4"):
        ImagePool(4).load_state_dict(pool.state_dict())
