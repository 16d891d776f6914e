"""`gan_standalone.py`: used as one file in a folder of its own, and held against `gan_detach.py`."""

import itertools
import json
import os
import re
import resource
import runpy
import shutil
import signal
import sys
from functools import partial

import numpy as np
import pytest
import torch
from helpers import call, change, load, path_of, saved, write_idx
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.optim.swa_utils import AveragedModel

from common.models import MODELS, conv
from common.options import RATES, GanOptions
from common.run import Run
from scripts import gan_detach, gan_standalone
from scripts.tools import evaluate, sample

ON_IMAGES = "--dataset images --image-size 28 --batch-size 4"
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
            runpy.run_path(str(folder / "gan_standalone.py"), run_name="__main__")
        except SystemExit as end:
            output, errors = capsys.readouterr()
            return (1, output, end.code) if isinstance(end.code, str) else (end.code, output, errors)
        return 0, *capsys.readouterr()

    return run


def run_of(folder):
    (run,) = folder.glob("runs/gan_standalone/*")
    return run


@pytest.fixture
def run(folder, here):
    """The folder of a run of two steps."""
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    return run_of(folder)


def assert_refused(outcome, message):
    status, _, errors = outcome
    (line,) = errors.splitlines()
    assert (status, "error: " in line, message in line) == (2, True, True), line


def test_it_imports_nothing_but_what_its_inline_metadata_names():
    text = path_of("gan_standalone").read_text()
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)) - sys.stdlib_module_names
    assert imported == {"torch", "torchvision", "PIL", "tqdm"}  # TensorBoard is behind torch's writer
    assert '\n# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]\n' in text  # torchvision brings PIL


@pytest.mark.smoke
def test_it_leaves_curves_pictures_and_a_checkpoint(folder, here):
    (folder / "images" / "._0.png").write_bytes(b"what macOS keeps beside an image")
    assert here(f"{ON_IMAGES} --steps 4 --sample-every 2")[0] == 0
    run = run_of(folder)
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}", run.name)  # two that start in the same second have a folder each
    assert {path.name for path in run.glob("samples/*")} == {"step-000002.png", "step-000004.png"}
    board = EventAccumulator(str(run)).Reload()
    for events in (board.Images("samples"), *map(board.Scalars, ("d_loss", "g_loss", "d_real", "d_fake"))):
        assert [event.step for event in events] == ([2, 4] if events == board.Images("samples") else [4])
    assert (load(run)["step"], load(run)["data_shapes"]) == (4, [[8, 3, 28, 28]])
    assert {path.name for path in folder.iterdir()} == {"gan_standalone.py", "images", "runs"}


def test_it_trains_on_mnist_s_own_files(folder, here):
    for name in ("train", "t10k"):
        write_idx(folder / "data" / "MNIST" / "raw", name, np.zeros((12, 28, 28), np.uint8), [0] * 12)
    assert here("--steps 2 --batch-size 4")[0] == 0
    assert load(run_of(folder))["data_shapes"] == [[12, 1, 28, 28]]


def test_its_help_is_ascii_and_ctrl_c_while_it_reads_images_ends_it_without_a_traceback(here, monkeypatch):
    status, output, _ = here("--help")
    assert (status, output.isascii(), "--dataset" in output) == (0, True, True)
    monkeypatch.setattr(Image, "open", lambda path: signal.raise_signal(signal.SIGINT))
    assert here(f"{ON_IMAGES} --steps 1") == (130, "", "")


def test_a_notebook_s_cell_runs_it_and_has_its_ctrl_c_back(folder, monkeypatch):
    """A cell has no `__file__`, and `sys.argv` holds the kernel's arguments."""
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "/root/.local/share/jupyter/kernel.json"])
    before = signal.getsignal(signal.SIGINT)
    source = (folder / "gan_standalone.py").read_text()
    own = f" else {f'{ON_IMAGES} --steps 2'.split()} "
    assert source.count(" else []  # a notebook") == 1
    exec(source.replace(" else []  # a notebook", f"{own} # a notebook"), {"__name__": "__main__"})
    assert load(run_of(folder))["step"] == 2
    assert signal.getsignal(signal.SIGINT) == before


def test_a_run_resumed_elsewhere_ends_with_the_bits_of_one_that_never_stopped(folder, here, monkeypatch):
    assert here(f"{ON_IMAGES} --steps 6 --seed 3")[0] == 0
    whole = run_of(folder).rename(folder / "whole")
    update, calls = AveragedModel.update_parameters, itertools.count(1)

    def interrupted_in_steps_3_and_5(*given):
        update(*given)
        if next(calls) in (3, 5):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(AveragedModel, "update_parameters", interrupted_in_steps_3_and_5)
    assert here(f"{ON_IMAGES} --steps 6 --seed 3")[0] == 130
    assert load(run_of(folder))["step"] == 3
    assert [path.name for path in run_of(folder).glob("samples/*")] == ["step-000003.png"]
    (folder / "elsewhere" / "images").mkdir(parents=True)  # as many others, in a folder of the same name
    for number in range(8):
        Image.new("RGB", (28, 28)).save(folder / "elsewhere" / "images" / f"{number}.png")
    monkeypatch.chdir(folder / "elsewhere")
    assert here(f"--resume {run_of(folder)}")[0] == 130
    (folder / "images").rename("moved")
    assert here(f"--resume {run_of(folder)} --dataset moved")[0] == 0
    resumed, expected = load(run_of(folder)), load(whole)
    assert resumed["options"].pop("dataset") == str(folder / "elsewhere" / "moved")
    assert expected["options"].pop("dataset") == str(folder / "images")
    assert (resumed.pop("options"), resumed.pop("script")) == (expected.pop("options"), expected.pop("script"))
    assert_same(resumed, expected)


BAD_OPTIONS = {
    "--dataset nowhere": "nowhere': no images can be read or downloaded; name mnist or a folder",
    "--dataset= --steps 1": "--dataset '': no images",  # and not the current folder's
    "--steps many": "--steps",
    "--sample-every 0": "--sample-every: at least 1",
    "--batch-size 1000000000000": "--batch-size: 1 to 1048576",
    f"--seed {2**63}": "--seed: 0 to 2**63 - 1",
    "--seed -1": "--seed: 0 to 2**63 - 1",
    "--resume nowhere": "--resume nowhere: holds no checkpoint",
}


@pytest.mark.parametrize(("arguments", "message"), BAD_OPTIONS.items())
def test_what_cannot_work_is_refused_in_one_line(arguments, message, here, folder):
    assert_refused(here(arguments), message)
    assert not (folder / "runs").exists()


def test_the_exported_variable_of_an_audit_costs_no_run_and_torchrun_is_refused(here, folder, monkeypatch):
    for variable, said in (("GRADIENT_AUDIT", "checkpoint: runs"), ("TORCHELASTIC_RUN_ID", "not with torchrun")):
        monkeypatch.setenv(variable, "1")
        assert said in here(f"{ON_IMAGES} --steps 1")[2].splitlines()[0]
        assert load(run_of(folder))["step"] == 1  # there is one run: the second one has not started


@pytest.mark.parametrize("image", [Image.new("I;16", (28, 28)), Image.new("F", (28, 28)), None])
def test_what_is_no_image_of_8_bits_is_named(image, here, folder):
    path = folder / "images" / "a.tiff"
    image.save(path) if image else path.write_bytes(b"no image")
    assert_refused(here(f"{ON_IMAGES} --steps 1"), "images/a.tiff: cannot be read as an image")


def test_an_image_is_upright_on_white_and_the_first_frame_if_it_moves(tmp_path):
    drawn, exif = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8), Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(drawn.transpose(1, 2, 0)).save(tmp_path / "a.png", exif=exif)
    Image.new("RGBA", (28, 28), (0, 100, 200, 51)).save(tmp_path / "b.png")
    Image.new("L", (28, 28), 10).save(tmp_path / "c.gif", save_all=True, append_images=[Image.new("L", (28, 28), 90)])
    turned, white, frame = gan_standalone.load_images(tmp_path, 28)
    assert turned.equal(torch.from_numpy(drawn).rot90(-1, (1, 2)))
    assert white.equal(torch.tensor([204, 224, 244], dtype=torch.uint8)[:, None, None].expand(3, 28, 28))
    assert frame.unique().tolist() == [10]


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
    assert not (run / ".checkpoint.pt").exists()
    change(run, lambda checkpoint: checkpoint["generator"]["0.weight"].fill_(torch.nan))
    status, _, errors = here(f"--resume {run} --steps 4")
    assert (status, "error: step 4: a weight is not finite" in errors) == (1, True)
    assert load(run)["step"] == 2


def test_a_finished_run_is_sampled_and_evaluated_by_the_tools(run, untrained):
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
    constants = gan_standalone.Z_DIM, gan_standalone.RATES, gan_standalone.BETAS, gan_standalone.EMA
    assert constants == (ours.z_dim, RATES, ours.betas, ours.ema)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64)])
def test_its_networks_are_those_of_gan_detach(shape):
    images = []
    for make in (gan_standalone.networks, partial(conv, z_dim=64)):
        torch.manual_seed(0)
        generator, discriminator = make(shape)
        images.append((generator(torch.ones(2, 64)), discriminator(torch.ones(2, *shape))))
    assert_same(*images)


def test_twenty_steps_of_the_whole_script_are_those_of_gan_detach_to_the_bit(folder, here, monkeypatch):
    """Given the same initial weights, batches, noise and form of Adam, and no augmentation."""
    assert here(f"{ON_IMAGES} --steps 20 --seed 3")[0] == 0
    mine, rows, noise = load(run_of(folder)), [], []

    def networks_and_draws(*given):
        torch.manual_seed(3)
        pair = conv(*given)
        torch.randn(64, 64)  # of the sample grids
        for _ in range(20):
            rows.append(torch.randint(8, (4,)))
            noise.append(torch.randn(4, 64))
        return pair

    monkeypatch.setitem(MODELS, "conv", networks_and_draws)
    monkeypatch.setattr("common.data.batch_order", lambda *_: itertools.cycle(rows))
    monkeypatch.setattr(Run, "noise", lambda *_: noise.pop(0))
    monkeypatch.setattr(gan_detach, "fused_adam", lambda given, lr, betas: torch.optim.Adam(given, lr=lr, betas=betas))
    options = ["--dataset", folder / "images", "--image-size=28", "--batch-size=4", "--steps=20", "--augment=off"]
    call(gan_detach, *options, "--runs-dir", folder / "ours")
    ours = saved(folder / "ours")
    names = ("generator", "discriminator", "average", "optimizer_g", "optimizer_d")
    assert_same({name: mine[name] for name in names}, {name: ours[name] for name in names})
