"""The folders of docs/data.md are made where their packages are installed, and else a line names the packages."""

from PIL import Image

from scripts.benchmarks import make_data


def test_a_drawing_is_put_on_a_white_square_and_small_or_empty_ones_are_left_out(tmp_path):
    wide = Image.linear_gradient("L").convert("RGB").resize((96, 48))
    for name, image in (("a", wide), ("b", wide.resize((40, 20))), ("c", Image.new("RGB", (96, 96), "red"))):
        image.save(tmp_path / f"{name}.png")
    ((name, square),) = make_data.drawings(sorted(tmp_path.iterdir()))
    assert (name, square.size, square.getpixel((32, 15))) == ("00000", (64, 64), (255, 255, 255))
    assert square.getpixel((32, 18)) < (30, 30, 30)


def test_packages_that_are_missing_are_named_in_a_line_and_no_folder_is_made(tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    for what, (_, packages) in make_data.FOLDERS.items():
        assert refusal("make_data", what).startswith(f"error: apt-get install {packages}: ")
    assert [*tmp_path.iterdir()] == []
