"""`gan_standalone.py`: used as one file in a folder of its own, and held against `gan_detach.py`."""

import errno
import json
import re
import runpy
import shutil
import signal
import struct
import sys
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch
from helpers import call, change, load, path_of
from PIL import Image
from processes import program, python, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

from common.models import MODELS
from common.run.options import GanOptions
from scripts import gan_detach, gan_standalone
from scripts.tools import digit_classifier, evaluate, sample

TINY = "--batch-size 4 --z-dim 8 --device cpu --log-every 2"
ON_IMAGES = f"--dataset images --image-size 28 {TINY}"
ALONE = ["-I", "gan_standalone.py"]  # -I: no folder of ours is on any path, nor the script's own
assert_same = partial(torch.testing.assert_close, rtol=0, atol=0)


@pytest.fixture
def folder(tmp_path):
    """A folder that holds the script and a folder of images, and nothing else."""
    shutil.copy(path_of("gan_standalone"), tmp_path)
    (tmp_path / "images" / "more").mkdir(parents=True)
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (30 + number, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / ("more" if number % 2 else "") / f"{number}.png")
    return tmp_path


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """A function that runs the script in this process; returns its status, stdout and stderr."""
    monkeypatch.chdir(folder)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(arguments):
        monkeypatch.setattr(sys, "argv", ["gan_standalone.py", *arguments.split()])
        with pytest.raises(SystemExit) as end:
            runpy.run_path("gan_standalone.py", run_name="__main__")
        return end.value.code, *capsys.readouterr()

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run(folder, here):
    """The folder of a run of two steps."""
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    return run_of(folder)


def run_of(folder):
    (run,) = folder.glob("runs/gan_standalone/*")
    return run


def assert_refused(outcome, message):
    status, _, errors = outcome
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert (status, message in line) == (2, True), line


def test_it_imports_nothing_but_what_its_inline_metadata_names():
    """The metadata of PEP 723, from which uv makes an environment."""
    text = path_of("gan_standalone").read_text()
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)) - sys.stdlib_module_names
    assert imported == {"torch", "torchvision", "PIL", "tqdm"}  # TensorBoard is behind torch's writer
    block = re.match(r"# /// script\n((?:# .+\n)+)# ///\n", text)[1]
    metadata = dict(line.removeprefix("# ").split(" = ", 1) for line in block.splitlines())
    assert json.loads(metadata["requires-python"]) == ">=3.10"
    assert set(json.loads(metadata["dependencies"])) == imported - {"PIL"} | {"tensorboard"}  # torchvision brings PIL


def test_the_copied_file_trains_on_a_folder_of_images(folder):
    (folder / "images" / "._0.png").write_bytes(b"what macOS keeps beside an image")
    done = python(*ALONE, *f"{ON_IMAGES} --steps 4 --sample-every 2".split(), folder=folder)
    assert done.returncode == 0, done.stderr
    run = run_of(folder)
    assert f"{run.relative_to(folder)}" in done.stdout
    assert sorted(path.name for path in run.glob("samples/*")) == ["step-000002.png", "step-000004.png"]
    assert Image.open(run / "samples" / "step-000004.png").size == (8 * 30 + 2, 8 * 30 + 2)
    board = EventAccumulator(str(run)).Reload()
    for name in ("d_loss", "g_loss", "d_real", "d_fake"):
        assert [event.step for event in board.Scalars(name)] == [2, 4]
    assert [event.step for event in board.Images("samples")] == [2, 4]
    checkpoint = load(run)
    assert (checkpoint["step"], checkpoint["data_shapes"]) == (4, [[8, 3, 28, 28]])
    assert checkpoint["average"]["n_averaged"] == 4
    assert {path.name for path in folder.iterdir()} == {"gan_standalone.py", "images", "runs"}


def test_it_trains_on_mnist_s_own_files(folder, here):
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("train", "t10k"):
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, 12, 28, 28) + bytes(12 * 28 * 28))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, 12) + bytes(12))
    assert here(f"--steps 2 {TINY}")[0] == 0
    assert load(run_of(folder))["data_shapes"] == [[12, 1, 28, 28]]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_one_process_trains_a_run_which_goes_on_after_a_signal(number, status, folder, here):
    with program(*ALONE, *f"{ON_IMAGES} --steps 100000 --sample-every 1".split(), cwd=folder) as process:
        wait_until(lambda: process.poll() is not None or list(folder.glob("runs/*/*/checkpoint.pt")))
        run = run_of(folder)
        assert_refused(here(f"--resume {run} --steps 1"), "another process trains this run")
        process.send_signal(number)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == status, errors
    assert "Traceback" not in errors
    assert (str(run.relative_to(folder)) in output) == (number != signal.SIGKILL)
    step = load(run)["step"]
    assert here(f"--resume {run} --steps {step + 1}")[0] == 0
    assert load(run)["step"] == step + 1


def test_the_first_ctrl_c_waits_for_its_step_and_the_second_does_not(folder, here, monkeypatch):
    def interrupted(steps, **_):
        for step in steps:
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
            yield step

    monkeypatch.setattr("tqdm.tqdm", interrupted)
    assert here(f"{ON_IMAGES} --steps 9")[0] == 130
    assert load(run_of(folder))["step"] == 1


def test_it_trains_on_a_file_system_without_locks(here, monkeypatch):
    monkeypatch.setattr("fcntl.lockf", mock.Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    assert here(f"{ON_IMAGES} --steps 1")[0] == 0


def test_a_run_that_was_resumed_ends_with_the_bits_of_one_that_never_stopped(folder, here):
    assert here(f"{ON_IMAGES} --steps 6 --runs-dir whole --seed 3")[0] == 0
    assert here(f"{ON_IMAGES} --steps 3 --seed 3")[0] == 0
    assert here(f"--resume {run_of(folder)} --steps 6")[0] == 0
    (whole,) = folder.glob("whole/*/*")
    resumed, expected = load(run_of(folder)), load(whole)
    assert resumed.pop("options") == expected.pop("options") | {"runs_dir": "runs"}
    assert resumed.pop("script") == expected.pop("script") == "gan_standalone"
    assert_same(resumed, expected)
    name = "samples/step-000006.png"
    assert (run_of(folder) / name).read_bytes() == (whole / name).read_bytes()


BAD_OPTIONS = {
    "--dataset nowhere": "--dataset nowhere: neither mnist nor a folder",
    "--lr nan": "--lr nan: must be from 0 to 1",
    "--device cuda:99": "--device cuda:99: cannot be used",
    "--no-such-option": "--no-such-option",
    "--resume nowhere": "--resume nowhere: holds no checkpoint",
}


@pytest.mark.parametrize(("arguments", "message"), BAD_OPTIONS.items())
def test_what_cannot_work_is_refused_in_one_line(arguments, message, here, folder):
    assert_refused(here(arguments), message)
    assert not (folder / "runs").exists()


GREY = Image.fromarray(np.full((28, 28), 25700, dtype=np.uint16))  # 100 of 255
PIXELS = [
    (GREY, {"format": "png"}, (100, 100, 100)),
    (GREY, {"format": "png", "transparency": 25700}, (255, 255, 255)),
    (Image.new("I", (28, 28), 25700), {"format": "tiff"}, (100, 100, 100)),
    (Image.new("RGBA", (28, 28), (0, 100, 200, 51)), {"format": "png"}, (204, 224, 244)),
    (Image.new("RGB", (28, 28)).quantize(2), {"format": "png", "transparency": 0}, (255, 255, 255)),
]


@pytest.mark.parametrize(("image", "options", "pixel"), PIXELS)
def test_16_bits_are_scaled_to_8_and_what_is_transparent_is_white(image, options, pixel, tmp_path):
    image.save(tmp_path / "image", **options)
    expected = torch.tensor(pixel, dtype=torch.uint8)[:, None, None].expand(3, 28, 28)
    assert gan_standalone.read_image(tmp_path / "image", 28).equal(expected)


@pytest.mark.parametrize("image", [Image.new("I", (28, 28), 65536), None])
def test_what_is_no_image_of_8_or_16_bits_is_named(image, here, folder):
    path = folder / "images" / "a.tiff"
    image.save(path) if image else path.write_bytes(b"no image")
    assert_refused(here(f"{ON_IMAGES} --steps 1"), "images/a.tiff cannot be read as an image")


class Executed:
    def __reduce__(self):
        return (print, ("executed",))


NO_CHECKPOINTS = [
    ({"script": "gan_detach"}, "made by gan_detach.py"),
    ({"step": -5}, "step -5"),
    ({"options": {"steps": "many"}}, "--steps"),
    ({"options": Executed()}, "holds no checkpoint"),
]


@pytest.mark.parametrize(("change", "message"), NO_CHECKPOINTS)
def test_what_is_no_checkpoint_of_this_script_is_refused_in_one_line(change, message, here, folder):
    torch.save({"script": "gan_standalone", "step": 1, "options": {}} | change, folder / "checkpoint.pt")
    outcome = here(f"--resume {folder}")
    assert_refused(outcome, message)
    assert "executed" not in outcome[1]


def test_a_damaged_checkpoint_is_refused(here, run):
    with (run / "checkpoint.pt").open("r+b") as file:
        file.seek((run / "checkpoint.pt").stat().st_size // 2)
        file.write(bytes(4096))
    load(run)  # torch.load sees nothing
    assert_refused(here(f"--resume {run} --steps 4"), "is damaged")
    (run / "checkpoint.pt").write_bytes(b"no archive")
    assert_refused(here(f"--resume {run} --steps 4"), "holds no checkpoint")


def test_a_run_goes_on_with_its_own_images_networks_and_options(here, run, folder):
    assert_refused(here(f"--resume {run} --lr 1"), "--lr: the run has 0.002; leave the option out")
    assert_refused(here(f"--resume {run} --dataset mnist"), "--dataset: the run has images")
    for number in range(3):
        next(folder.glob(f"images/**/{number}.png")).unlink()
    assert_refused(here(f"--resume {run} --steps 4"), "the images were [[8, 3, 28, 28]] and are [[5, 3, 28, 28]]")
    change(run, lambda checkpoint: checkpoint.update(data_shapes=[[5, 3, 28, 28]], generator={}))
    assert_refused(here(f"--resume {run} --steps 4"), "the checkpoint does not fit")
    assert load(run)["step"] == 2


def test_weights_that_are_not_finite_are_not_saved_over_those_that_are(here, run):
    change(run, lambda checkpoint: checkpoint["generator"]["1.weight"].fill_(torch.nan))
    before = (run / "checkpoint.pt").read_bytes()
    status, _, errors = here(f"--resume {run} --steps 4")
    assert status == 1
    assert "error: step 4: a weight is not finite" in errors
    assert (run / "checkpoint.pt").read_bytes() == before


def test_a_finished_run_is_sampled_and_evaluated_by_the_tools(run, monkeypatch):
    features = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()
    monkeypatch.setattr(digit_classifier, "digit_classifier", lambda: (features, 0.1))  # to train one takes long
    call(sample, run, "--count=3", "--output=images.npz", "--device=cpu")
    call(evaluate, run, "--features=digits", "--device=cpu")
    assert np.load("images.npz")["images"].shape == (3, 3, 28, 28)
    (entry,) = json.loads((run / "evaluation.json").read_bytes())
    assert (entry["count"], entry["step"]) == (4, 2)
    assert entry["samples"].keys() >= {"fid", "confident"}


# What follows keeps the one page from drifting away from `gan_detach.py`.


def test_its_options_are_a_subset_of_those_of_the_others(here, run):
    flags = set(re.findall(r"^  --([a-z-]+)", here("--help")[1], re.MULTILINE))
    assert flags <= {name.replace("_", "-") for name in GanOptions.__dataclass_fields__}
    assert {"dataset", "steps", "runs-dir", "resume"} <= flags
    defaults = GanOptions()
    for name, value in load(run)["options"].items():
        if f"--{name.replace('_', '-')} " not in f"{ON_IMAGES} --steps --device --runs-dir ":
            assert value == getattr(defaults, name), name


def make_pairs(shape):
    """The pair of the one page and the pair of `common/models.py`, from the same seed."""
    torch.manual_seed(0)
    mine = gan_standalone.networks(shape, 16)
    torch.manual_seed(0)
    return mine, MODELS["conv"](shape, 16)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 56, 56), (3, 64, 64)])
def test_its_networks_are_those_of_gan_detach(shape):
    mine, ours = make_pairs(shape)
    for one, other in zip(mine, ours, strict=True):
        assert_same(dict(one.state_dict()), dict(other.state_dict()), check_stride=True)
    z = torch.randn(2, 16)
    assert mine[0](z).equal(ours[0](z))
    assert mine[1](ours[0](z)).equal(ours[1](ours[0](z)))


def test_five_steps_are_those_of_gan_detach_to_the_bit():
    ends = []
    for pair, step in zip(make_pairs((1, 28, 28)), (gan_standalone.train_step, gan_detach.train_step), strict=True):
        optimizers = [torch.optim.Adam(n.parameters(), lr=2e-3, betas=(0.0, 0.999)) for n in pair]
        draws = torch.Generator().manual_seed(1)
        values = []
        for _ in range(5):
            real = torch.rand(4, 1, 28, 28, generator=draws) * 2 - 1
            values.append(step(*pair, *optimizers, real, torch.randn(4, 16, generator=draws)))
        ends.append((values, [dict(network.state_dict()) for network in pair]))
    assert_same(*ends)
