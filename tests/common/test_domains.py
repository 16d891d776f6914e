"""Two domains: the usual four folders or digits and outlines; crops are of the place, and mirrored, as drawn."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from common import data, image_files
from common.cyclegan_data import crop_and_flip, load_domains, outlines
from common.data import batches, load_mnist5k
from common.errors import BadInput
from common.image_files import StreamedImages
from scripts import cyclegan


def make_folder(folder, **parts):
    """A folder for each part, of so many images of this mode, all pixels of an image its number."""
    for name, (count, mode) in parts.items():
        (folder / name).mkdir()
        for number in range(count):
            Image.new("L", (40 + number, 30), number).convert(mode).save(folder / name / f"{number:03}.png")
    return str(folder)


def test_domains_are_digits_and_outlines_of_other_digits_judged_by_digits_held_out():
    digits, domains, (held_out, _) = load_mnist5k()[0], load_domains("mnist5k"), load_mnist5k(held_out=True)
    assert len(domains.a) == len(domains.b) == 2000
    assert domains.a.equal(digits[0::2])
    assert domains.b.equal(outlines(digits[1::2]))
    assert domains.test_a.equal(held_out)
    assert domains.truth.equal(outlines(held_out))
    assert not domains.augmented
    assert load_domains("mnist5k", 32).test_a.shape == (1000, 1, 32, 32)


def test_outline_of_a_dot_is_the_ring_around_it():
    image = torch.zeros(1, 1, 5, 5, dtype=torch.uint8)
    image[0, 0, 2, 2] = 200
    ring = torch.zeros(5, 5, dtype=torch.uint8)
    ring[1:4, 1:4] = 200
    ring[2, 2] = 0
    assert outlines(image)[0, 0].equal(ring)


def test_every_tenth_image_of_another_folder_is_held_out(tmp_path):
    folder = make_folder(tmp_path, images=(25, "L"))
    domains = load_domains(folder, 16)
    assert domains.test_a[:, 0, 0, 0].tolist() == [0, 10, 20]
    assert domains.a[:, 0, 0, 0].tolist() == [1, 3, 5, 7, 9, 12, 14, 16, 18, 21, 23]
    assert len(domains.b) == 11
    assert domains.truth.equal(outlines(domains.test_a))


def test_four_folders_are_read_at_the_sizes_to_crop_from_and_to_train_at(tmp_path):
    folder = make_folder(tmp_path, trainA=(3, "L"), trainB=(5, "L"), testA=(2, "L"), testB=(1, "L"))
    domains = load_domains(folder)
    shapes = [tuple(images.shape) for images in (domains.a, domains.b, domains.test_a, domains.test_b)]
    assert shapes == [(3, 1, 286, 286), (5, 1, 286, 286), (2, 1, 256, 256), (1, 1, 256, 256)]
    assert domains.truth is None
    assert domains.augmented
    domains = load_domains(folder, 16, 20)
    assert (domains.a.shape[-1], domains.test_a.shape[-1]) == (20, 16)


def test_without_test_folders_the_training_images_are_shown(tmp_path):
    domains = load_domains(make_folder(tmp_path, trainA=(3, "L"), trainB=(5, "L")), 16)
    assert (domains.test_a.shape, domains.test_b.shape) == ((3, 1, 16, 16), (5, 1, 16, 16))


@pytest.mark.parametrize("limit", [image_files.MEMORY_LIMIT, 0])
def test_a_greyscale_domain_beside_one_in_colour_becomes_rgb_in_memory_and_streamed(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(image_files, "MEMORY_LIMIT", limit)
    folder = make_folder(tmp_path, trainA=(3, "L"), trainB=(5, "RGB"), testA=(2, "L"), testB=(1, "L"))
    domains = load_domains(folder, 16)
    parts = (domains.a, domains.b, domains.test_a, domains.test_b)
    assert all(isinstance(images, StreamedImages) == (limit == 0) for images in parts)
    assert [images.shape[1] for images in parts] == [3] * 4
    assert [next(batches(images, 2, seed=0)).shape[1] for images in parts] == [3] * 4


def test_what_makes_no_two_domains_is_refused_by_name(tmp_path, monkeypatch):
    folder = make_folder(tmp_path, trainA=(3, "L"), plain=(2, "L"))
    with pytest.raises(BadInput, match="trainB"):
        load_domains(folder)
    with pytest.raises(BadInput, match="--load-size 15: must be at least the image size, 16"):
        load_domains(folder, 16, 15)
    with pytest.raises(BadInput, match="--load-size 30: is for a --dataset with trainA"):
        load_domains("mnist5k", load_size=30)
    monkeypatch.setattr(image_files, "MEMORY_LIMIT", 0)
    with pytest.raises(BadInput, match=f"--dataset {folder}/plain: too big to make two domains of"):
        load_domains(f"{folder}/plain")


@pytest.mark.numerics
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_a_crop_is_the_square_that_was_drawn_and_mirrored_as_drawn(count, channels, more, size, seed):
    height, width = (size + extra for extra in more)
    images = torch.arange(count * channels * height * width).view(count, channels, height, width)
    draws = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed))
    cropped = crop_and_flip(images, size, draws)
    for image, crop, draw in zip(images.numpy(), cropped.numpy(), draws.numpy(), strict=True):
        top, left = int(draw[0] * np.float32(height - size + 1)), int(draw[1] * np.float32(width - size + 1))
        expected = image[:, top : top + size, left : left + size]
        assert (crop == (expected[:, :, ::-1] if draw[2] >= 0.5 else expected)).all()


def test_every_place_is_as_likely_up_to_the_edges():
    images = torch.arange(9).view(1, 1, 3, 3).expand(9000, 1, 3, 3)
    draws = torch.rand(9000, 3, generator=torch.Generator().manual_seed(0))
    draws[:, 2] = 0
    counts = torch.bincount(crop_and_flip(images, 1, draws).flatten(), minlength=9)
    assert (counts / 1000 - 1).abs().max() < 4 / 1000**0.5
    largest = torch.full((1, 3), 1 - 2**-24)
    assert crop_and_flip(images[:1], 2, largest).flatten().tolist() == [5, 4, 8, 7]


def test_images_loaded_at_the_size_to_train_at_are_still_flipped(tmp_path, monkeypatch):
    folder = Path(make_folder(tmp_path, trainA=(1, "L"), trainB=(1, "L")))
    ramp = Image.linear_gradient("L").rotate(90).resize((16, 16))
    for domain in "AB":
        ramp.save(folder / f"train{domain}" / "000.png")
    seen, step = [], cyclegan.train_step

    def watched(*arguments):
        seen.extend(image for reals in arguments[8:10] for image in reals)
        return step(*arguments)

    monkeypatch.setattr(cyclegan, "train_step", watched)
    sizes = {"image_size": 16, "load_size": 16, "width": 2, "blocks": 1, "halvings": 1}
    cyclegan.main(
        cyclegan.CycleGANOptions(dataset=str(folder), steps=2, device="cpu", runs_dir=tmp_path / "runs", **sizes)
    )
    original = data.to_float(torch.from_numpy(np.array(ramp)))[None]
    flipped = [image.equal(original.flip(-1)) for image in seen]
    assert all(is_flipped or image.equal(original) for is_flipped, image in zip(flipped, seen, strict=True))
    assert {True, False} == set(flipped)  # but with a probability of 2^-31
