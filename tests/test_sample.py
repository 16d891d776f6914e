"""Walks through z, and the folder of files that appears whole or not at all."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from common.command_line import BadInput
from scripts import sample
from scripts.sample import Options, points, walk


def array(options, folder):
    sample.main(Options(**options, output=folder / "images.npz"))
    return np.load(folder / "images.npz")["images"]


def test_a_folder_holds_the_images_of_the_array_one_to_a_file(run, tmp_path):
    sample.main(Options(run, count=12, output=tmp_path / "images"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(12)]
    images = np.stack([np.array(Image.open(file)) for file in files])[:, None]
    assert np.array_equal(images, array({"run": run, "count": 12}, tmp_path))


def test_a_folder_that_exists_is_left_alone(run, tmp_path):
    (tmp_path / "images").mkdir()
    with pytest.raises(BadInput, match="images: exists already"):
        sample.main(Options(run, output=tmp_path / "images"))
    assert list((tmp_path / "images").iterdir()) == []


def test_nothing_is_left_of_a_folder_that_could_not_be_finished(run, tmp_path, monkeypatch):
    class Full:
        def save(self, path):
            assert not (tmp_path / "images").exists()
            if path.name == "000005.png":
                raise OSError("No space left on device")
            path.touch()

    monkeypatch.setattr(sample, "to_pil_image", lambda image: Full())
    with pytest.raises(OSError, match="No space left"):
        sample.main(Options(run, output=tmp_path / "images"))
    assert list(tmp_path.iterdir()) == [run]


def test_a_walk_starts_and_ends_at_points_of_its_own_and_turns_by_equal_angles():
    start, end = torch.eye(4, dtype=torch.float64)[:2, None]
    found = walk(start, end, 4)
    angles = torch.tensor([0, 30, 60, 90], dtype=torch.float64) * math.pi / 180
    assert found[0].equal(start[0])
    assert torch.allclose(found, angles.cos()[:, None] * start + angles.sin()[:, None] * end, rtol=0, atol=1e-15)


def test_every_point_of_a_walk_is_as_likely_as_noise():
    z = points(64, Options("run", count=5 * 4000, interpolate=5)).view(4000, 5, 64)
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


def test_neighbours_on_a_walk_look_alike(run, tmp_path):
    images = array({"run": run, "count": 64, "interpolate": 64}, tmp_path).astype(float)
    between = np.abs(np.diff(images, axis=0)).mean((1, 2, 3))
    assert between.max() < np.abs(images[0] - images[-1]).mean() / 10


@pytest.mark.parametrize(("count", "steps"), [(64, 1), (64, 7), (4, 8)])
def test_a_walk_that_does_not_divide_the_images_into_rows_is_refused(count, steps, run):
    with pytest.raises(BadInput, match=f"--interpolate {steps}: must be 2 or more and divide the --count of {count}"):
        sample.main(Options(run, count=count, interpolate=steps))


def test_a_cyclegan_has_nothing_to_walk_in(run):
    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True) | {"a_to_b": {}}
    torch.save(checkpoint, run / "checkpoint.pt")
    with pytest.raises(BadInput, match="--interpolate 8: a CycleGAN"):
        sample.main(Options(run, interpolate=8))
