"""Two domains: four folders, or digits and outlines, or in pairs; crops are of the place, and mirrored, as drawn."""

import re
import shutil

import numpy as np
import pytest
import torch
from helpers import ROOT, make_images, open_run
from hypothesis import given
from hypothesis.strategies import integers, tuples

from common.data import load_dataset, load_images, to_float, to_uint8
from common.domains import crop_and_flip, load_domains, outlines
from common.errors import BadInput


def test_domains_are_digits_and_outlines_of_other_digits_judged_by_digits_held_out():
    digits, held_out = load_images("mnist5k"), load_dataset("mnist5k", held_out=True)[0]
    a, b, test_a, test_b, are_outlines = load_domains("mnist5k")
    assert len(a) == len(b) == 2000
    assert a.equal(digits[0::2])
    assert b.equal(outlines(digits[1::2]))
    assert test_a.equal(held_out)
    assert test_b.equal(outlines(held_out))
    assert are_outlines
    assert load_domains("mnist5k", 32)[2].shape == (1000, 1, 32, 32)


def test_every_tenth_image_of_another_folder_is_held_out(tmp_path):
    a, b, test_a, test_b, _ = load_domains(str(make_images(tmp_path, 25)), 16)
    assert test_a[:, 0, 0, 0].tolist() == [0, 10, 20]
    assert a[:, 0, 0, 0].tolist() == [1, 3, 5, 7, 9, 12, 14, 16, 18, 21, 23]
    assert len(b) == 11
    assert test_b.equal(outlines(test_a))


def test_four_folders_are_read_at_the_sizes_to_crop_from_and_to_train_at(tmp_path):
    for name, count in (("trainA", 3), ("trainB", 5), ("testA", 2), ("testB", 1)):
        make_images(tmp_path / name, count)
    *images, are_outlines = load_domains(str(tmp_path))
    assert [(len(part), *part.shape[1:3]) for part in images] == [(3, 3, 286), (5, 3, 286), (2, 3, 256), (1, 3, 256)]
    assert not are_outlines
    for name in ("testA", "testB"):
        shutil.rmtree(tmp_path / name)
    *images, _ = load_domains(str(tmp_path), 16)  # the training images are shown
    assert [(len(part), part.shape[-1]) for part in images] == [(3, 18), (5, 18), (3, 16), (5, 16)]


def test_the_pairs_of_the_docs_stay_together_and_a_finished_run_is_used_as_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("input", "target"):
        make_images(tmp_path / name / "a", 5)
        make_images(tmp_path / name / "b", 4, darkest=5)
    code, use = re.findall(r"^```python\n(import torch\n.*?)^```", (ROOT / "docs" / "data.md").read_text(), re.M | re.S)
    generator = torch.nn.Conv2d(1, 1, 1)
    with open_run(tmp_path / "runs", steps=5) as run:
        names = {"run": run, "state": {"generator": generator}, "pictures": {}, "seen": []}
        exec(code + "    seen.append((source, target))", names)
    assert len(names["seen"]) == 5
    for source, target in names["seen"]:
        assert source.shape == (4, 1, 64, 64)
        assert source.equal(target)
    assert not names["seen"][0][0].equal(names["seen"][1][0])
    run.folder.rename(tmp_path / "finished")
    (tmp_path / "output").mkdir()
    use = use.replace("runs/gan_mine/20260101-120000", "finished").replace('mode = "RGB"', 'mode = "L"')
    exec(use, {"make_generator": lambda: torch.nn.Conv2d(1, 1, 1)})
    expected = to_uint8(generator(to_float(load_images("input"))))
    assert load_images("output").equal(expected)
    with pytest.raises(FileExistsError):
        exec(use, {"make_generator": lambda: torch.nn.Conv2d(1, 1, 1)})
    (tmp_path / "input" / "a" / "003.png").unlink()
    (tmp_path / "target" / "b" / "003.png").unlink()  # without their folders, the names would be the same
    with pytest.raises(SystemExit, match=r"no pairs, as \['a/003', 'b/003'\]"):
        exec(code, names)


@pytest.mark.parametrize(
    "names", ["trainA", "trainB", "testA", "traina trainB", "train_A", "trainA trainB testA testb"]
)
def test_folders_that_are_no_two_domains_are_refused_by_name(names, tmp_path):
    for name in names.split():
        make_images(tmp_path / name, 3)
    with pytest.raises(BadInput, match=f"--dataset {tmp_path}: has .*; take trainA, trainB and both tests or none"):
        load_domains(str(tmp_path))
    few = make_images(tmp_path / "few", 2)
    with pytest.raises(BadInput, match=f"--dataset {few}: two domains take three images or more"):
        load_domains(str(few))


@pytest.mark.numerics
@given(integers(1, 4), integers(1, 3), tuples(integers(0, 5), integers(0, 5)), integers(1, 8), integers(0, 2**32 - 1))
def test_a_crop_is_the_square_that_was_drawn_and_mirrored_as_drawn(count, channels, more, size, seed):
    height, width = (size + extra for extra in more)
    images = torch.arange(count * channels * height * width).view(count, channels, height, width)
    draws = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed))
    cropped = crop_and_flip(images, size, draws)
    for image, crop, draw in zip(images.numpy(), cropped.numpy(), draws.numpy(), strict=True):
        top, left = int(draw[0] * np.float32(height - size + 1)), int(draw[1] * np.float32(width - size + 1))
        expected = image[:, top : top + size, left : left + size]
        assert (crop == (expected[:, :, ::-1] if draw[2] >= 0.5 else expected)).all()
