"""Walks through z, and what is written where."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from common.errors import BadInput
from scripts.tools import sample
from scripts.tools.sample import Options, draw_noise, walk


def array(options, folder):
    sample.main(Options(**options, output=folder / "images.npz"))
    return np.load(folder / "images.npz")["images"]


def test_a_folder_holds_the_images_of_the_array_one_to_a_file(run, tmp_path):
    sample.main(Options(run, count=12, output=tmp_path / "images"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(12)]
    images = np.stack([np.array(Image.open(file)) for file in files])[:, None]
    assert np.array_equal(images, array({"run": run, "count": 12}, tmp_path))


def test_what_exists_is_left_alone_but_for_the_grid_of_the_run(run, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "mine.png").write_text("mine")
    for name in ("images", "mine.png"):
        with pytest.raises(BadInput, match=f"--output .*{name}: exists already"):
            sample.main(Options(run, output=tmp_path / name))
    assert (tmp_path / "mine.png").read_text() == "mine"
    for count in (4, 9):
        sample.main(Options(run, count=count))
        assert Image.open(run / "samples.png").width == round(count**0.5) * 58 + 2


@pytest.mark.numerics
def test_a_walk_starts_and_ends_at_points_of_its_own_and_turns_by_equal_angles():
    start, end = torch.eye(4, dtype=torch.float64)[:2, None]
    found = walk(start, end, 4)
    angles = torch.tensor([0, 30, 60, 90], dtype=torch.float64) * math.pi / 180
    assert found[0].equal(start[0])
    assert torch.allclose(found, angles.cos()[:, None] * start + angles.sin()[:, None] * end, rtol=0, atol=1e-12)


@pytest.mark.numerics
def test_every_point_of_a_walk_is_as_likely_as_noise():
    z = draw_noise(5 * 4000, 64, Options("run", interpolate=5)).view(4000, 5, 64)
    variance = z.var((0, 2))
    assert torch.allclose(variance, torch.ones(5), atol=0.02)  # seven standard errors; a straight line has 0.5 halfway
    assert not z[0, 0].equal(z[1, 0])


def test_the_rows_of_the_grid_are_the_walks(run, tmp_path):
    sample.main(Options(run, count=12, interpolate=6))
    grid = np.array(Image.open(run / "samples.png"))
    assert grid.shape == (2 * 58 + 2, 6 * 58 + 2)  # grey, each image at twice its 28 pixels
    images = array({"run": run, "count": 12, "interpolate": 6}, tmp_path)
    assert np.array_equal(grid[60:116:2, 292:348:2], images[11, 0])
    assert np.array_equal(grid[61:116:2, 293:348:2], images[11, 0])


def test_a_walk_that_does_not_divide_the_images_into_rows_is_refused(run):
    with pytest.raises(BadInput, match="--interpolate 7: must be 2 or more and divide the --count of 64"):
        sample.main(Options(run, count=64, interpolate=7))
