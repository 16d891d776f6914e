"""Walks through z, what is written where, and runs whose networks `common/models.py` does not have."""

import errno
import re
import runpy
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT, change, load
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.optim.swa_utils import AveragedModel

from common.checkpoint import load_initial_weights
from common.data import to_uint8
from common.errors import BadInput
from common.models import mlp
from scripts.tools import evaluate, sample, translate
from scripts.tools.finished_run import load_generator, load_network
from scripts.tools.sample import Options


def array(options, folder, name="images"):
    sample.main(Options(**options, output=folder / f"{name}.npz"))
    return np.load(folder / f"{name}.npz")["images"]


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


def test_a_place_in_the_home_folder_is_there_also_where_a_shell_leaves_the_tilde(run, tmp_path, monkeypatch, outcome):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert outcome("sample", run, "--count", 4, "--output=~/grid.png")[0] == 0
    assert (tmp_path / "grid.png").exists()
    assert "error: --output=~no one/grid.png: Could not" in outcome("sample", run, "--output=~no one/grid.png")[2]


def test_a_folder_on_a_full_disk_is_not_made(run, tmp_path, monkeypatch, outcome):
    def write(path, content, whole=Path.write_bytes):
        if path.name == "000003.png":
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(Path, "write_bytes", write)
    output = tmp_path / "new" / "images"
    output.parent.mkdir()
    line = f"error: {output}: cannot be written: No space left on device\n"
    assert outcome("sample", run, "--count", 9, "--output", output) == (1, "", line)
    assert not [*output.parent.iterdir()]


def test_an_array_has_the_images_of_the_grid_and_of_the_files_of_a_folder(run, tmp_path):
    images = array({"run": run, "count": 4}, tmp_path)
    sample.main(Options(run, count=4))
    grid = np.array(Image.open(run / "samples.png"))
    assert grid.shape == (2 * 58 + 2, 2 * 58 + 2)  # grey, each image at twice its 28 pixels
    assert np.array_equal(grid[60:116:2, 2:58:2], images[2, 0])
    sample.main(Options(run, count=4, output=tmp_path / "images"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(4)]
    assert np.array_equal(np.stack([np.array(Image.open(file)) for file in files])[:, None], images)


def test_the_average_is_the_one_that_the_checkpoint_names_and_what_was_taken_is_printed(run, untrained, capsys):
    def outcome(**averages):
        change(run, lambda checkpoint: checkpoint.update(averages))
        sample.main(Options(run))
        evaluate.main(evaluate.Options(run, count=10))
        printed, errors = capsys.readouterr()
        kinds = re.findall(r"samples.png \((.*) weights\)|, (.*) weights, 10 images", printed)
        return [first or second for first, second in kinds], errors, (run / "samples.png").read_bytes()

    average = outcome()
    assert average[:2] == (["average"] * 2, "")
    change(run, lambda checkpoint: checkpoint.update(ema=checkpoint.pop("average")))
    last = outcome(averages={"discriminator": "ema"})
    assert last[:2] == (["last"] * 2, "") and last[2] != average[2]
    assert outcome(averages={"generator": "ema"}) == average


OWN = """
import math
import torch

class Wave(torch.nn.Module):
    def __init__(self, pixels):
        super().__init__()
        self.register_buffer("wave", torch.linspace(0, 1e9, pixels, dtype=torch.float64), persistent=False)

    def forward(self, pixels):
        return (pixels + self.wave).sin().float()  # of a buffer in no checkpoint, whose type matters

def make_networks(image_shape, z_dim):
    pixels = math.prod(image_shape)
    layers = torch.nn.Linear(z_dim, pixels), Wave(pixels), torch.nn.Dropout(), torch.nn.Unflatten(1, image_shape)
    return torch.nn.Sequential(*layers), None
"""


@pytest.fixture
def own(run, tmp_path):
    """The file that makes the networks of `run`, and the generator."""
    script = tmp_path / "own.py"
    script.write_text(OWN)
    average = AveragedModel(runpy.run_path(str(script))["make_networks"]((1, 28, 28), 8)[0])
    change(run, lambda checkpoint: checkpoint.update(average=average.state_dict()))
    return script, average


def test_a_run_with_networks_of_its_own_is_sampled_and_one_on_floats_gives_them_as_they_are(own, run, tmp_path):
    script, average = own
    options = {"run": run, "count": 5, "networks": f"{script}:make_networks", "device": "cpu"}
    expected = average.eval()(torch.randn(5, 8, generator=torch.Generator().manual_seed(0))).detach()
    found = array(options, tmp_path)
    assert np.abs(found.astype(int) - to_uint8(expected).numpy()).max() <= 1  # rounded to the other side, at most
    change(run, lambda checkpoint: checkpoint.update(data_types=["float32"]))
    for output in (None, tmp_path / "folder", tmp_path / "grid.png"):
        with pytest.raises(BadInput, match="are floats, not images; name a new"):
            sample.main(Options(**options, output=output))
    sample.main(Options(**options, output=tmp_path / "floats.npz"))
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "floats.npz")["samples"]), expected)


def test_a_network_that_holds_its_weights_in_a_list_too_and_one_made_by_a_function_are_those_of_the_run(run, tmp_path):
    script = tmp_path / "own.py"
    script.write_text(
        OWN.replace(
            "    return torch.nn.Sequential(*layers), None",
            "    layers[1].pairs = [(layers[0].weight, layers[0].bias)]\n"
            "    layers[1].forward = lambda given: torch.nn.functional.linear(z[0], *layers[1].pairs[0]).tanh()\n"
            "    z = []\n"
            "    layers[0].register_forward_pre_hook(lambda layer, given: z.__setitem__(slice(None), given))\n"
            "    return torch.nn.Sequential(*layers), None",
        )
    )

    def make():
        return runpy.run_path(str(script))["make_networks"]((1, 28, 28), 8)[0]

    trained = make().eval()
    for entry, weights in (("generator", trained.state_dict()), ("average", AveragedModel(trained).state_dict())):
        change(run, lambda checkpoint, entry=entry, weights=weights: checkpoint.update({entry: weights}))
    z = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    for weights in ("last", "average"):
        loaded = load_generator(run, f"{script}:make_networks", weights)
        assert loaded(z).equal(trained(z).view(5, 1, 28, 28))
        loaded = load_network(load(run), run, "generator", weights, make, "make")
        assert loaded(z).equal(trained(z).view(5, 1, 28, 28))


def test_a_buffer_that_no_checkpoint_has_is_that_of_the_function_given_to_load_network(own, run):
    script, average = own
    make = runpy.run_path(str(script))["make_networks"]
    generator = load_network(load(run), run, "generator", "average", lambda: make((1, 28, 28), 8)[0], "make")
    z = torch.randn(5, 8)
    assert generator(z).equal(average.eval()(z))


def test_a_file_of_networks_may_have_options_of_its_own_whose_annotations_are_text(own, run, tmp_path):
    script, _ = own
    options = """
@dataclass(frozen=True)
class Mine(Options):
    width: Annotated[int, Range(1, 9)] = 1
"""
    text = script.read_text().replace("    pixels = math", "    Mine()\n    pixels = math")
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import Annotated\n"
    script.write_text(f"{head}from common.options import Options, Range\n{options}{text}")
    assert len(array({"run": run, "count": 5, "networks": f"{script}:make_networks"}, tmp_path)) == 5


def test_a_run_of_a_network_that_torch_compile_returned_is_sampled(run, tmp_path):
    before = array({"run": run, "count": 5}, tmp_path)

    def compiled(checkpoint):
        for name in ("generator", "average"):
            keys = {key: key.replace("module.", "module._orig_mod.") for key in checkpoint[name]}
            keys = {key: new if name == "average" else f"_orig_mod.{key}" for key, new in keys.items()}
            checkpoint[name] = {keys[key]: weight for key, weight in checkpoint[name].items()}

    change(run, compiled)
    assert (array({"run": run, "count": 5}, tmp_path, "compiled") == before).all()
    weight = next(weight for name, weight in load(run)["average"].items() if name.endswith("weight"))
    for wrap in (torch.nn.Module.train, torch.compile):  # the first returns the network itself
        generator = mlp((1, 28, 28), 8)[0]
        load_initial_weights({"generator": wrap(generator)}, load(run), run)
        assert next(generator.parameters()).equal(weight)


def add_layer(script, result):
    """Add a last layer to the generator that the script makes, which returns `result` of `images`."""
    layer = f"class Last(torch.nn.Module):\n    def forward(self, images):\n        return {result}\n\n"
    source = script.read_text().replace("torch.nn.Sequential(*layers)", "torch.nn.Sequential(*layers, Last())")
    script.write_text(source.replace("class Wave", f"{layer}class Wave"))
    return f"{script}:make_networks"


def test_the_seed_fixes_the_noise_that_a_generator_draws_itself(own, run, tmp_path):
    networks = add_layer(own[0], "images + 0.1 * torch.randn_like(images)")
    options = {"run": run, "count": 5, "networks": networks, "device": "cpu"}
    first, again, other = (array(options | {"seed": seed}, tmp_path, f"{seed}-{i}") for i, seed in enumerate((0, 0, 1)))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_samples_do_not_go_into_the_folder_of_images(run, tmp_path):
    (tmp_path / "images").mkdir()
    change(run, lambda checkpoint: checkpoint["options"].update(dataset=str(tmp_path / "images")))
    with pytest.raises(BadInput, match=r"--output .*fakes: is in .*images, the images of a run"):
        sample.main(Options(run, output=tmp_path / "images" / "fakes"))


def test_images_of_two_channels_are_no_picture(own, run, tmp_path):
    options = {"run": run, "networks": add_layer(own[0], "images.repeat(1, 2, 1, 1)")}
    with pytest.raises(BadInput, match=r"images of 2 channels are no pictures; name a new .npz file"):
        sample.main(Options(**options))
    assert array(options, tmp_path).shape == (64, 2, 28, 28)


def test_a_shape_that_main_gave_as_one_of_torch_is_no_other_layer(own, run, capsys):
    generator = runpy.run_path(str(own[0]))["make_networks"](torch.Size([1, 28, 28]), 8)[0]
    change(run, lambda checkpoint: checkpoint.update(layers={"generator": str(generator)}))
    sample.main(Options(run, networks=f"{own[0]}:make_networks"))
    assert "torch.Size" in str(generator)
    assert "note: " not in capsys.readouterr().out


@pytest.mark.parametrize("as_text", [False, True])  # of each network, as runs store it; of the generator alone
def test_layers_that_are_others_than_those_of_the_run_are_noted(as_text, copied, capsys):
    sample.main(Options(copied))
    assert "note: " not in capsys.readouterr().out
    text = load(copied)["layers"]["generator"].replace("Tanh()", "Sigmoid()")
    change(copied, lambda checkpoint: checkpoint.update(layers=text if as_text else {"generator": text}))
    sample.main(Options(copied))
    assert "note: generator had Sigmoid(), not Tanh(): is a layer changed" in capsys.readouterr().out


def test_samples_of_another_size_than_the_data_are_noted_and_not_evaluated(own, run, capsys):
    networks = add_layer(own[0], "images.repeat(1, 1, 2, 2)")
    sample.main(Options(run, networks=networks))
    assert "they have the shape [1, 56, 56], and the run's data [1, 28, 28]" in capsys.readouterr().out
    for layer, shape in (
        ("images.repeat(1, 1, 2, 2)", "1, 56, 56"),
        ("images[:, 0]", "28, 28"),
        ("images.flatten(1)", "784"),
    ):
        with pytest.raises(BadInput, match=rf"its samples are \[{shape}\], and those of mnist5k \[1, 28, 28\]"):
            evaluate.main(evaluate.Options(run, networks=add_layer(own[0], layer)))


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        (None, "--networks FILE:FUNCTION"),
        ("{script}", "must be FILE:FUNCTION"),
        ("no_such.py:networks", "No such file"),
        ("{script}:no_such", "has no function no_such"),
        ("{leaves}:f", "SystemExit: 0"),
        ("{script}:Wave", "TypeError: Wave.__init__() takes 2"),
        ("{script}:alone", "TypeError: must return (generator, discriminator), not a Linear"),
        ("{models}:mlp", "does not hold this network, of --networks {models}:mlp: "),
    ],
)
def test_what_makes_no_networks_of_the_run_is_refused_in_one_line(networks, told, own, run, refusal):
    paths = {"script": own[0], "models": ROOT / "common" / "models.py", "leaves": own[0].with_name("leaves.py")}
    paths["leaves"].write_text("raise SystemExit(0)")
    with own[0].open("a") as script:
        script.write("\n\ndef alone(*_):\n    return torch.nn.Linear(1, 1)\n")
    options = ["--networks", networks.format(**paths)] if networks else []
    assert told.format(**paths) in refusal("sample", run, *options)
    change(run, lambda checkpoint: checkpoint["options"].update(model="mine"))
    assert told.format(**paths) in refusal("sample", run, *options)


LEAVES = st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.sampled_from(["", "a", "generator"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LEAVES, inner, max_size=2))
ENTRIES = st.sampled_from(["options", "classes", "data_shapes", "data_types", "averages"])
OPTIONS = st.sampled_from(["z_dim", "model", "dataset", "fit", "hold_out", "width", "blocks"])


@settings(max_examples=25)
@given(values=st.dictionaries(ENTRIES, VALUES, max_size=2), options=st.dictionaries(OPTIONS, VALUES, max_size=2))
def test_entries_of_other_types_are_refused_in_a_line_or_taken(values, options, finished, finished_cyclegan):
    with tempfile.TemporaryDirectory() as folder:
        for name, origin in (("gan", finished), ("cyclegan", finished_cyclegan)):
            run = Path(shutil.copytree(origin, Path(folder) / name))
            change(run, lambda checkpoint: checkpoint.update({"options": checkpoint["options"] | options} | values))
        image = Path(folder) / "image.png"
        Image.new("L", (8, 8)).save(image)
        commands = [
            lambda: sample.main(Options(Path(folder) / "gan", count=2)),
            lambda: sample.main(Options(Path(folder) / "gan", of_class="b")),
            lambda: evaluate.main(evaluate.Options(Path(folder) / "gan", count=4, weights="last", features="random")),
            lambda: translate.main(translate.Options(Path(folder) / "cyclegan", image, Path(folder) / "out")),
        ]
        for command in commands:
            with suppress(BadInput):
                command()
