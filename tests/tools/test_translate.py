"""Images of any size, kind and name go through a finished CycleGAN and come back in their own size."""

import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import contents, load
from PIL import Image
from torch.optim.swa_utils import AveragedModel

from common.cyclegan_models import resnet_generator
from common.data import to_uint8
from common.errors import BadInput
from scripts.tools.translate import Options, main, translate

FILES = {
    "a.png": (28, 28),
    "b.JPG": (31, 45),
    "sub/c.webp": (1, 1),
    "sub/d.pgm": (3, 64),
    "e.tif": (9, 8),
}


@pytest.fixture
def images(tmp_path):
    """Noise in files of several kinds, half of them greyscale."""
    noise = np.random.default_rng(0)
    (tmp_path / "images" / "sub").mkdir(parents=True)
    for number, (name, (width, height)) in enumerate(FILES.items()):
        shape = (height, width) if number % 2 else (height, width, 3)
        Image.fromarray(noise.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / "images" / name)
    (tmp_path / "images" / "notes.txt").touch()
    return tmp_path / "images"


@pytest.mark.parametrize("size", [(28, 28), (27, 30), (1, 1), (33, 2)])
def test_a_size_is_reflected_to_one_that_the_network_takes_and_cut_back(size):
    image = torch.arange(math.prod(size), dtype=torch.uint8).view(1, *size)
    seen = []

    class Same(torch.nn.Conv2d):
        def forward(self, images):
            seen.append(to_uint8(images))
            return images

    assert translate(Same(1, 1, 1), image).equal(image)
    missing = [(0, max(8, -(-side // 4) * 4) - side) for side in size]
    assert np.array_equal(seen[0][0, 0], np.pad(image[0], missing, mode="reflect"))


@pytest.mark.numerics
@pytest.mark.parametrize("direction", ["a-to-b", "b-to-a"])
def test_the_run_s_averaged_generator_of_the_direction_translates(direction, finished_cyclegan, images, tmp_path):
    generator = AveragedModel(resnet_generator(1, width=2, blocks=1))
    checkpoint = load(finished_cyclegan)
    generator.load_state_dict(checkpoint[f"average_{direction.replace('-', '_')}"])
    main(Options(finished_cyclegan, images / "a.png", tmp_path / "out", direction))
    grey = np.array(Image.open(images / "a.png").convert("L"))
    translated = np.array(Image.open(tmp_path / "out" / "a.png"))
    assert (translated == translate(generator, torch.from_numpy(grey)[None])[0].numpy()).all()


def test_a_jpeg_file_has_the_translation_of_its_pixels_nearly(finished_cyclegan, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (32, 32), dtype=np.uint8)
    (tmp_path / "in").mkdir()
    Image.fromarray(noise).save(tmp_path / "in" / "a.jpg", quality=100)
    Image.open(tmp_path / "in" / "a.jpg").save(tmp_path / "in" / "b.png")
    main(Options(finished_cyclegan, tmp_path / "in", tmp_path / "out"))
    jpeg, exact = (np.array(Image.open(tmp_path / "out" / name)).astype(int) for name in ("a.jpg", "b.png"))
    coarse = io.BytesIO()
    Image.fromarray(exact.astype(np.uint8)).save(coarse, "jpeg", quality=85)
    assert np.abs(jpeg - exact).mean() < np.abs(np.array(Image.open(coarse)).astype(int) - exact).mean()


def test_bad_input_is_refused_by_name_before_anything_is_written(finished_cyclegan, finished, images, tmp_path):
    output = tmp_path / "out"
    with pytest.raises(BadInput, match=f"{finished}: a run of gan_detach.py; name one of cyclegan.py"):
        main(Options(finished, images, output))
    (tmp_path / "empty").mkdir()
    for name, told in (("missing", "no image, "), ("empty", "no images in it"), ("images/notes.txt", "no image, ")):
        with pytest.raises(BadInput, match=f"{name}: {told}"):
            main(Options(finished_cyclegan, tmp_path / name, output))
        assert not output.exists()
    with pytest.raises(BadInput, match=r"images/out: is in .*images, the images of a run"):
        main(Options(finished_cyclegan, images, images / "out"))
    checkpoint = load(finished_cyclegan)
    checkpoint["options"]["dataset"] = str(tmp_path)
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    with pytest.raises(BadInput, match=f"out: is in {tmp_path}, the images of a run"):
        main(Options(tmp_path, images / "a.png", output))
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"file: cannot be made a folder; choose another: "):
        main(Options(finished_cyclegan, images, tmp_path / "file"))
    mine = output / "sub" / "d.pgm"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(BadInput, match=f"holds already 1 of 5 images, as {mine}; choose"):
        main(Options(finished_cyclegan, images, output))
    assert contents(output).keys() == {"sub", "sub/d.pgm"}


def test_what_cannot_be_translated_is_named_and_all_else_is_translated(finished_cyclegan, images, tmp_path, outcome):
    (images / "a.png").write_text("not a picture")
    (images / "gone\n.png").symlink_to("nowhere")
    Image.new("L", (17000, 1)).save(images / "wide.png")
    (images / "wide.png").rename(images / "wide.webp")  # which holds at most 16,383 pixels a side
    icons = {"icon.ico": (53, 31), "wide.ico": (300, 20), f"{'x' * 250}.ico": (7, 5)}  # an icon holds up to 256 a side
    for name, size in icons.items():
        Image.new("L", size).save(images / "icon.png")
        (images / "icon.png").rename(images / name)
    status, printed, errors = outcome("translate", finished_cyclegan, images, "--output", tmp_path / "out")
    assert status == 1
    named = re.findall(rf"[\r\n]{images}/(\S+) cannot be ", errors)
    assert named == ["a.png", r"gone\n.png", "wide.ico", "wide.webp"]
    *_, last = errors.splitlines()
    assert last == "error: 4 of 10 images could not be translated; each has a line above"
    assert f"6 images: {tmp_path / 'out'}" in printed
    sizes = {name: size for name, size in (FILES | icons).items() if name not in named}
    assert contents(tmp_path / "out").keys() == {*sizes, "sub"}
    for name, size in sizes.items():
        with Image.open(tmp_path / "out" / name) as image:
            assert (image.size, image.format) == (size, Image.registered_extensions()[Path(name).suffix.lower()])


UNFIT = [{"average_a_to_b": {}}, {"data_shapes": [[1], [1], [8], [8]]}]
UNFIT += [{"options": options} for options in ({}, {"width": 2, "blocks": 10**9}, {"width": 3, "blocks": 1})]


@pytest.mark.parametrize("entries", UNFIT)
def test_weights_that_do_not_fit_their_options_are_refused(entries, finished_cyclegan, images, tmp_path):
    torch.save(load(finished_cyclegan) | entries, tmp_path / "checkpoint.pt")
    with pytest.raises(BadInput, match=f"^{tmp_path}: "):
        main(Options(tmp_path, images, tmp_path / "out"))
    assert not (tmp_path / "out").exists()
