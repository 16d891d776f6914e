"""`gan_standalone.py`: used as one file in a folder of its own, and held against `gan_detach.py`."""

import itertools
import json
import os
import re
import resource
import runpy
import shutil
import signal
import struct
import sys
from functools import partial

import numpy as np
import pytest
import torch
from helpers import call, change, load, path_of
from PIL import Image
from processes import PATIENCE, program, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from common.data import to_float
from common.models import MODELS
from common.optimizers import linear_decay
from common.options import GanOptions
from scripts import gan_detach, gan_standalone
from scripts.tools import evaluate, sample
from scripts.tools.classifier import Classifier

TINY = "--batch-size 4"
ON_IMAGES = f"--dataset images --image-size 28 {TINY}"
assert_same = partial(torch.testing.assert_close, rtol=0, atol=0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, which holds the script and a folder of images, and nothing else."""
    shutil.copy(path_of("gan_standalone"), tmp_path)
    (tmp_path / "images" / "more").mkdir(parents=True)
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (30 + number, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / ("more" if number % 2 else "") / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """A function that runs the script in this process; returns its status, stdout and stderr."""

    def run(arguments):
        monkeypatch.setattr(sys, "argv", ["gan_standalone.py", *arguments.split()])
        try:
            runpy.run_path("gan_standalone.py", run_name="__main__")
        except SystemExit as end:
            return end.code, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return run


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
    text = path_of("gan_standalone").read_text()
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)) - sys.stdlib_module_names
    assert imported == {"torch", "torchvision", "PIL", "tqdm"}  # TensorBoard is behind torch's writer
    assert '\n# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]\n' in text  # torchvision brings PIL


def test_it_leaves_curves_pictures_and_a_checkpoint(folder, here):
    (folder / "images" / "._0.png").write_bytes(b"what macOS keeps beside an image")
    assert here(f"{ON_IMAGES} --steps 4 --sample-every 2")[0] == 0
    run = run_of(folder)
    assert {path.name for path in run.glob("samples/*")} == {"step-000002.png", "step-000004.png"}
    board = EventAccumulator(str(run)).Reload()
    for events in (board.Images("samples"), *map(board.Scalars, ("d_loss", "g_loss", "d_real", "d_fake"))):
        assert [event.step for event in events] == ([2, 4] if events == board.Images("samples") else [4])
    assert (load(run)["step"], load(run)["data_shapes"]) == (4, [[8, 3, 28, 28]])
    assert {path.name for path in folder.iterdir()} == {"gan_standalone.py", "images", "runs"}


def test_it_trains_on_mnist_s_own_files(folder, here):
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("train", "t10k"):
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, 12, 28, 28) + bytes(12 * 28 * 28))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, 12) + bytes(12))
    assert here(f"--steps 2 {TINY}")[0] == 0
    assert load(run_of(folder))["data_shapes"] == [[12, 1, 28, 28]]


def test_ctrl_c_ends_it_between_two_steps_with_everything_saved(folder):
    arguments = f"{ON_IMAGES} --steps 100000 --sample-every 100000".split()
    with program("-I", "gan_standalone.py", *arguments, cwd=folder) as process:  # -I: none of our folders on the path
        wait_until(lambda: process.poll() is not None or list(folder.glob("runs/*/*/events*")))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in errors) == (130, False), errors
    run = run_of(folder)
    assert str(run.relative_to(folder)) in output
    assert [int(path.stem[5:]) for path in run.glob("samples/*")] == [load(run)["step"]]


def test_a_notebook_s_cell_runs_it_and_has_its_ctrl_c_back(folder, monkeypatch):
    """A cell has no `__file__`, and `sys.argv` holds the kernel's arguments."""
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "/root/.local/share/jupyter/kernel.json"])
    before = signal.getsignal(signal.SIGINT)
    source = (folder / "gan_standalone.py").read_text()
    own = f" else {f'{ON_IMAGES} --steps 2'.split()} "
    assert source.count(" else [] ") == 1
    exec(source.replace(" else [] ", own), {"__name__": "__main__"})
    assert load(run_of(folder))["step"] == 2
    assert signal.getsignal(signal.SIGINT) == before


def test_a_run_that_was_resumed_ends_with_the_bits_of_one_that_never_stopped(folder, here, monkeypatch):
    assert here(f"{ON_IMAGES} --steps 6 --seed 3")[0] == 0
    whole = run_of(folder).rename(folder / "whole")
    update, calls = AveragedModel.update_parameters, itertools.count(1)

    def interrupted_in_step_3(*given):
        update(*given)
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(AveragedModel, "update_parameters", interrupted_in_step_3)
    assert here(f"{ON_IMAGES} --steps 6 --seed 3")[0] == 130
    assert load(run_of(folder))["step"] == 3
    assert here(f"--resume {run_of(folder)}")[0] == 0
    resumed, expected = load(run_of(folder)), load(whole)
    assert (resumed.pop("options"), resumed.pop("script")) == (expected.pop("options"), expected.pop("script"))
    assert_same(resumed, expected)


BAD_OPTIONS = {
    "--dataset nowhere": "--dataset nowhere: neither mnist nor a folder",
    "--steps many": "--steps",
    "--sample-every 0": "--sample-every: must be at least 1",
    "--resume nowhere": "--resume nowhere: holds no checkpoint",
}


@pytest.mark.parametrize(("arguments", "message"), BAD_OPTIONS.items())
def test_what_cannot_work_is_refused_in_one_line(arguments, message, here, folder):
    assert_refused(here(arguments), message)
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("image", [Image.new("I;16", (28, 28)), Image.new("F", (28, 28)), None])
def test_what_is_no_image_of_8_bits_is_named(image, here, folder):
    path = folder / "images" / "a.tiff"
    image.save(path) if image else path.write_bytes(b"no image")
    assert_refused(here(f"{ON_IMAGES} --steps 1"), "images/a.tiff: cannot be read as an image")


def test_what_is_transparent_is_white(tmp_path):
    Image.new("RGBA", (28, 28), (0, 100, 200, 51)).save(tmp_path / "image.png")
    pixel = torch.tensor([204, 224, 244], dtype=torch.uint8)
    assert gan_standalone.read_image(tmp_path / "image.png", 28).equal(pixel[:, None, None].expand(3, 28, 28))


def test_a_run_goes_on_with_its_own_images_networks_and_options(here, run, folder):
    (folder / "images" / "0.png").unlink()
    assert_refused(here(f"--resume {run} --steps 4"), "the images were [[8, 3, 28, 28]] and are [[7, 3, 28, 28]]")
    change(run, lambda checkpoint: checkpoint.update(data_shapes=[[7, 3, 28, 28]], generator={}))
    assert_refused(here(f"--resume {run} --steps 4"), "the checkpoint does not fit")
    change(run, lambda checkpoint: checkpoint.update(script=print))  # what is no plain data could be executed
    assert_refused(here(f"--resume {run} --steps 4"), "Weights only load failed")
    (run / "checkpoint.pt").write_bytes(b"no archive")
    assert_refused(here(f"--resume {run} --steps 4"), "holds no checkpoint")


def test_a_full_disk_and_weights_that_are_not_finite_leave_the_last_checkpoint_and_a_line(here, run):
    before = (run / "checkpoint.pt").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        status, _, errors = here(f"--resume {run} --steps 4")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (status, f"error: {run}: no checkpoint is written" in errors) == (1, True)
    assert (run / "checkpoint.pt").read_bytes() == before
    change(run, lambda checkpoint: checkpoint["generator"]["0.weight"].fill_(torch.nan))
    status, _, errors = here(f"--resume {run} --steps 4")
    assert (status, "error: step 4: a weight is not finite" in errors) == (1, True)
    assert load(run)["step"] == 2


def test_a_finished_run_is_sampled_and_evaluated_by_the_tools(run, monkeypatch):
    features = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()
    judge = Classifier(features, (1, 28), tuple("0123456789"), 0.1, 1000)
    monkeypatch.setattr(evaluate, "digit_classifier", lambda: judge)  # to train one takes long
    call(sample, run, "--count=3", "--output=images.npz", "--device=cpu")
    call(evaluate, run, "--features=digits", "--device=cpu")
    assert np.load("images.npz")["images"].shape == (3, 3, 28, 28)
    (entry,) = json.loads((run / "evaluation.json").read_bytes())
    assert (entry["count"], entry["step"]) == (4, 2)


# What follows keeps the one page from drifting away from `gan_detach.py`.


def test_its_options_and_defaults_are_those_of_gan_detach(monkeypatch):
    monkeypatch.setattr(gan_standalone, "ARGUMENTS", [])
    mine, ours = vars(gan_standalone.parse()[0]), GanOptions()
    assert mine.keys() <= vars(ours).keys()
    assert {name for name in mine if mine[name] != getattr(ours, name)} <= {"dataset"}
    constants = gan_standalone.Z_DIM, gan_standalone.LR, gan_standalone.BETAS, gan_standalone.EMA
    assert constants == (ours.z_dim, ours.lr, ours.betas, ours.ema)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 56, 56), (3, 64, 64)])
def test_its_networks_are_those_of_gan_detach(shape):
    torch.manual_seed(0)
    mine = gan_standalone.networks(shape)
    torch.manual_seed(0)
    ours = MODELS["conv"](shape, 64)
    z = torch.randn(2, 64)
    assert mine[0](z).equal(ours[0](z))
    assert mine[1](ours[0](z)).equal(ours[1](ours[0](z)))


def test_twenty_steps_of_the_whole_script_are_those_of_gan_detach_to_the_bit(folder, here):
    """With images in [-1, 1], rates that fall from the middle on, and the average updated after the step."""
    assert here(f"{ON_IMAGES} --steps 20 --seed 3")[0] == 0
    images = gan_standalone.load_images(folder / "images", 28)
    torch.manual_seed(3)
    generator, discriminator = MODELS["conv"]((3, 28, 28), 64)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=3e-3, betas=(0.0, 0.9))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=3e-3, betas=(0.0, 0.9))
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(0.995))
    draws = torch.Generator().manual_seed(3)
    torch.randn(64, 64, generator=draws)  # of the sample grids
    for step in range(20):
        for optimizer in (optimizer_g, optimizer_d):
            optimizer.param_groups[0]["lr"] = 3e-3 * linear_decay(20, 10)(step)
        real = to_float(images[torch.randint(8, (4,), generator=draws)])
        z = torch.randn(4, 64, generator=draws)
        gan_detach.train_step(generator, discriminator, optimizer_g, optimizer_d, real, z)
        average.update_parameters(generator)
    checkpoint = load(run_of(folder))
    for name, network in (("generator", generator), ("discriminator", discriminator), ("average", average)):
        assert_same(dict(checkpoint[name]), dict(network.state_dict()))
