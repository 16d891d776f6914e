"""Folders of images as they are in life: every file gives the right pixels, or one line with its path.

Pixels are exact: every image is of the size asked for, or of one colour, so that scaling changes nothing.
"""

import io
import os
import re
import resource
import struct
import tempfile

import numpy as np
import pytest
import torch
from helpers import ROOT
from PIL import Image
from processes import python

from common.data import load_images
from common.errors import BadInput
from common.image_files import IMAGE_SUFFIXES, image_paths, load_files, map_images, read_image


def load(folder):
    """Return the images of a folder, uint8 (N, C, 2, 2), sorted by path."""
    return load_images(str(folder), 2)


def pixels(array, **how):
    """Return a function that saves these pixels as an image file."""
    return lambda path: Image.fromarray(np.array(array)).save(path, **how)


def content(hexadecimal):
    return lambda path: path.write_bytes(bytes.fromhex(hexadecimal))


def animation(path):
    red, blue = (Image.new("RGB", (2, 2), colour) for colour in ((255, 0, 0), (0, 0, 255)))
    red.save(path, save_all=True, append_images=[blue])


# 16 bits are scaled to 8, not clipped, 257 to a step: 0, 0.996, 128, 255.
DEEP, SHALLOW = np.array([[0, 256], [32896, 65535]], dtype="<u2"), [[[0, 1], [128, 255]]]
# Opaque red, green hidden by full transparency, blue of which half is seen, opaque black: on white, by hand.
SEE_THROUGH = np.array([[[255, 0, 0, 255], [0, 255, 0, 0]], [[0, 0, 255, 128], [0, 0, 0, 255]]], dtype=np.uint8)
ON_WHITE = [[[255, 255], [127, 0]], [[0, 255], [127, 0]], [[0, 255], [255, 0]]]
GREY = np.array([[[0, 255], [0, 0]], [[0, 128], [200, 255]]], dtype=np.uint8)  # stays greyscale
# A transparent colour, 2: in 16 bits as a file, which old versions of Pillow do not write.
NUMBERS, WITHOUT_2 = np.array([[0, 1], [2, 0]], dtype=np.uint8), [[0, 1], [255, 0]]
SIXTEEN_BITS = """89504e470d0a1a0a0000000d4948445200000002000000021000000000074d8ebb0000000274524e530207dac13a19000000
    1249444154789c6364606764606262f8cf00000263010d412d3ed40000000049454e44ae426082"""
FOUR_BITS = """89504e470d0a1a0a0000000d4948445200000002000000020400000000922dbff90000000274524e530002989d
    ac140000000c49444154789c6360645000000027002242521a360000000049454e44ae426082"""
RED = [[[255] * 2] * 2, [[0] * 2] * 2, [[0] * 2] * 2]  # the first frame
FILES = [
    *(("16 bits", name, pixels(DEEP), SHALLOW) for name in ("a.png", "a.tif")),
    ("16 bits", "a.pgm", lambda path: path.write_bytes(b"P5 2 2 65535\n" + DEEP.astype(">u2").tobytes()), SHALLOW),
    *(("transparent", name, pixels(SEE_THROUGH), ON_WHITE) for name in ("a.png", "a.tif")),
    ("transparent grey", "a.png", pixels(GREY), [[[0, 255], [127, 200]]]),
    ("a transparent grey", "a.png", pixels(NUMBERS, transparency=2), [WITHOUT_2]),
    ("a transparent colour", "a.png", pixels(np.stack([NUMBERS] * 3, -1), transparency=(2, 2, 2)), [WITHOUT_2] * 3),
    ("a transparent grey of 16 bits", "a.png", content(SIXTEEN_BITS), [WITHOUT_2]),
    *(("an animation", name, animation, RED) for name in ("a.gif", "a.png", "a.tif")),
]


@pytest.mark.parametrize(("name", "save", "expected"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_a_file_gives_the_right_pixels(name, save, expected, tmp_path):
    save(tmp_path / name)
    (image,) = load(tmp_path)
    assert image.tolist() == expected


@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize("mode", [None, "RGB"])
def test_pixels_of_an_unknown_range_are_refused_at_the_start(kind, mode, tmp_path):
    Image.fromarray(np.ones((2, 2), dtype=kind)).save(tmp_path / "a.tif")
    with pytest.raises(BadInput, match=r"a\.tif cannot be read as an image; .*its pixels are floating-point"):
        load_files([f"{tmp_path}/a.tif"], 2, mode)
    with pytest.raises(BadInput, match="floating-point"):
        read_image(tmp_path / "a.tif", 2, mode)


def test_a_transparent_colour_of_four_bits_which_pillow_mistakes_is_refused_at_the_start(tmp_path):
    content(FOUR_BITS)(tmp_path / "a.png")
    with pytest.raises(BadInput, match=r"a\.png cannot be read as an image; .*a transparent colour of 2 or 4 bits"):
        load(tmp_path)


@pytest.mark.parametrize(("pixels", "tags"), [(np.int8, {339: 2}), (np.int16, {339: 2}), (np.uint16, {})])
def test_a_tiff_whose_pixels_pillow_mistakes_is_refused(pixels, tags, tmp_path):
    """Signed pixels, and 16-bit ones of which 0 is white."""
    image = Image.fromarray(np.arange(4).reshape(2, 2).astype(np.dtype(pixels).str.replace("i", "u")))
    image.save(tmp_path / "a.tif", tiffinfo=tags)
    if not tags:
        content, black = (tmp_path / "a.tif").read_bytes(), struct.pack("<HHII", 262, 3, 1, 1)
        assert content.count(black) == 1
        (tmp_path / "a.tif").write_bytes(content.replace(black, struct.pack("<HHII", 262, 3, 1, 0)))
    with pytest.raises(BadInput, match=r"a\.tif cannot be read as an image"):
        load(tmp_path)


def noise(suffix):
    """Return the bytes of an image that is worth truncating, dark on the left and bright on the right."""
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 100, (40, 40, 3), dtype=np.uint8)
    pixels[:, 20:] += 150
    Image.fromarray(pixels).save(file, Image.registered_extensions()[suffix])
    return file.getvalue()


@pytest.mark.parametrize("content", [b"", b"404 Not Found\n", noise(".png")[:20], bytes(5000)], ids=len)
def test_bad_files_are_found_before_the_first_step_and_all_named_in_one_line(content, tmp_path, refusal):
    images, runs = tmp_path / "images", tmp_path / "runs"
    images.mkdir()
    Image.new("L", (2, 2)).save(images / "good.png")
    (images / "line\nbreak.png").write_bytes(content)
    line = refusal("gan_detach", "--dataset", images, "--model", "mlp", "--runs-dir", runs)
    assert line.startswith(rf"error: {images}/line\nbreak.png cannot be read as an image; ")
    (images / "another.png").write_bytes(content)  # before and after a good one
    named = rf"another\.png cannot be .*; {images}/line\\nbreak\.png cannot be"
    assert re.search(named, refusal("gan_detach", "--dataset", images, "--model", "mlp", "--runs-dir", runs))
    assert not runs.exists()


@pytest.mark.parametrize("suffix", IMAGE_SUFFIXES)
def test_a_file_is_read_and_truncated_anywhere_it_is_refused_or_decoded_never_a_crash(suffix, tmp_path):
    whole = noise(suffix)
    path = tmp_path / f"a{suffix.upper()}"
    path.write_bytes(whole)
    assert (read_image(*image_paths(tmp_path), 2) > 127).tolist() == [[[False, True]] * 2] * 3
    refused = 0
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        try:
            assert read_image(path, 2).shape == (3, 2, 2)
        except BadInput as error:
            assert str(path) in str(error)
            refused += 1
    assert refused >= 20


ODD_NAMES = ["--help.png", "-.png", "a\nb.png", "caf\udce9.png", "ñ 图 🖼.PNG", "%s{}.png", " .png", "*.png"]


def test_odd_names_are_names(tmp_path):
    for number, name in enumerate(sorted(ODD_NAMES)):
        Image.new("L", (2, 2), number).save(tmp_path / "plain.bmp")
        (tmp_path / "plain.bmp").rename(tmp_path / name)
    assert load(tmp_path)[:, 0, 0, 0].tolist() == list(range(len(ODD_NAMES)))


@pytest.mark.parametrize("target", ["a.png", "missing.png", "fifo", "/dev/zero"])
def test_a_link_that_leads_to_no_regular_file_is_named(target, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "a.png").symlink_to(target)
    with pytest.raises(BadInput, match=r"a\.png cannot be read"):
        load(tmp_path)


def test_links_are_followed_a_folder_is_read_once_hidden_files_never_and_what_is_left_out_is_told(tmp_path, capsys):
    images, elsewhere = tmp_path / "images", tmp_path / "elsewhere"
    for folder in (images / "a", images / ".ipynb_checkpoints", elsewhere):
        folder.mkdir(parents=True)
        Image.new("L", (4, 4)).save(folder / "1.png")
    links = {"a/circle": images, "b": images / "a", "c": elsewhere, "d.png": elsewhere / "1.png"}
    for name, target in links.items():
        (images / name).symlink_to(target)
    for name in ("._1.png", "._1.svg", "1.svg", "a/2.HEIC", "a/3.HEIC", "a/notes"):
        (images / name).write_bytes(b"no image that is taken")
    assert image_paths(images) == [f"{images}/{name}" for name in ("a/1.png", "c/1.png", "d.png")]
    image_paths(images)  # which prints the line once
    told = f"{images}: left out 4 of 7 files: 2 .heic, 1 .svg, 1 without a suffix; convert images\n"
    assert capsys.readouterr().err == told


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def scandir(place, whole=os.scandir):
        if "locked" in str(place):
            raise PermissionError(13, "Permission denied", place)
        return whole(place)

    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(BadInput, match=f"^{tmp_path}/locked: this folder cannot be read .Permission denied"):
        image_paths(tmp_path)


def test_a_folder_is_one_tensor_whose_file_has_no_name_and_which_needs_space(tmp_path, monkeypatch):
    """Noise in files of several formats and sizes, every third one greyscale, one of them of 16 bits."""
    noise, (images, scratch) = np.random.default_rng(0), (tmp_path / name for name in ("images", "scratch"))
    images.mkdir()
    scratch.mkdir()
    for number in range(40):
        shape = (20 + number % 7, 30) if number % 3 == 1 else (30, 20 + number % 7, 3)
        image = Image.fromarray(noise.integers(0, 256, shape, dtype=np.uint16 if number == 4 else np.uint8))
        image.save(images / f"{number:02}.{'jpg' if number % 2 else 'png'}")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    loaded = load_images(str(images), 16)
    assert not [*scratch.iterdir()]
    assert loaded.equal(torch.stack([read_image(path, 16, "RGB") for path in image_paths(images)]))
    bad = images / "31.jpg"
    bad.write_bytes(bad.read_bytes()[:-300])  # its header is whole
    with pytest.raises(BadInput, match=rf"{bad} cannot be read as an image; mend or replace it: "):
        load_images(str(images), 16)
    with pytest.raises(BadInput, match=rf"^{scratch}/no: cannot hold the pixels; set TMPDIR to another: "):
        monkeypatch.setattr(tempfile, "tempdir", f"{scratch}/no")
        map_images([torch.zeros(1, 2, 2, dtype=torch.uint8)])
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # the disk is full within the second image
    try:
        with pytest.raises(BadInput, match=rf"^{scratch}: cannot hold the pixels; set TMPDIR to another: "):
            map_images(torch.zeros(3, 1, 16, 16, dtype=torch.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_an_error_of_the_images_themselves_is_not_blamed_on_the_space_for_them():
    def images():
        yield torch.zeros(1, 2, 2, dtype=torch.uint8)
        raise FileNotFoundError("of the caller's own")

    with pytest.raises(FileNotFoundError, match="of the caller's own"):
        map_images(images())


GREY_ONE, COLOURED = torch.zeros(1, 2, 2, dtype=torch.uint8), torch.ones(3, 2, 2, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("images", "fault"),
    [
        ([], "there are no images"),
        ([COLOURED / 255], "image 0 is no uint8 tensor"),
        ([COLOURED, COLOURED[0]], "image 1 is no"),
        ([COLOURED, COLOURED.numpy()], "image 1 is no"),
        ([GREY_ONE, COLOURED[:, :, :1]], "image 1 is no .* or of another size"),
        ([COLOURED[:2], GREY_ONE], "image 1 is no"),
    ],
)
def test_what_is_mapped_are_uint8_images_of_one_size(images, fault):
    assert map_images([GREY_ONE, COLOURED]).equal(torch.stack([GREY_ONE.expand(3, -1, -1), COLOURED]))
    with pytest.raises(BadInput, match=f"^map_images: {fault}"):
        map_images(iter(images))


def test_a_large_image_is_read_without_a_warning_that_names_no_file(tmp_path):
    Image.new("1", (10_000, 9_000)).save(tmp_path / "large.png")
    script = f"from common.image_files import read_image; read_image({str(tmp_path / 'large.png')!r}, 8)"
    done = python("-c", script, folder=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
