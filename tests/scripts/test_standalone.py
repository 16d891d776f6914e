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
from unittest import mock

import numpy as np
import pytest
import torch
from helpers import call, load, path_of, saved, write_idx
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.optim.swa_utils import AveragedModel

from common.board import note_layers
from common.models import MODELS, conv
from common.optimizers import linear_decay
from common.options import GanOptions
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

    before = signal.getsignal(signal.SIGINT)
    yield run
    signal.signal(signal.SIGINT, before)  # an error leaves the script's own


def run_of(folder):
    (run,) = folder.glob("runs/gan_standalone/*")
    return run


def test_it_imports_nothing_but_what_its_inline_metadata_names():
    text = path_of("gan_standalone").read_text()
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)) - sys.stdlib_module_names
    assert imported == {"torch", "torchvision", "PIL", "tqdm"}  # TensorBoard is behind torch's writer
    assert '\n# dependencies = ["torch", "torchvision", "tensorboard", "tqdm"]\n' in text  # torchvision brings PIL


@pytest.mark.smoke
def test_it_leaves_curves_pictures_and_a_checkpoint(folder, here):
    assert here(f"{ON_IMAGES} --steps 4 --sample-every 2")[0] == 0
    run = run_of(folder)
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}", run.name)  # two that start in the same second have a folder each
    assert {path.name for path in run.glob("samples/*")} == {"step-000002.png", "step-000004.png"}
    board = EventAccumulator(str(run)).Reload()
    for name in ("d_loss", "g_loss", "d_real", "d_fake"):
        assert [event.step for event in board.Scalars(name)] == [4]
    assert (load(run)["step"], load(run)["data_shapes"]) == (4, [[8, 3, 28, 28]])
    assert {path.name for path in folder.iterdir()} == {"gan_standalone.py", "images", "runs"}


def test_it_trains_on_mnist_s_own_files(folder, here):
    for name in ("train", "t10k"):
        write_idx(folder / "data" / "MNIST" / "raw", name, np.zeros((12, 28, 28), np.uint8), [0] * 12)
    assert here("--steps 2 --batch-size 4")[0] == 0
    assert load(run_of(folder))["data_shapes"] == [[12, 1, 28, 28]]


def test_its_help_is_ascii_and_what_cannot_work_is_refused_in_one_line(here, folder, monkeypatch):
    status, output, _ = here("--help")
    assert (status, output.isascii(), "--dataset" in output) == (0, True, True)
    assert here("--steps many")[::2] == (2, "gan_standalone.py: error: argument --steps: invalid int value: 'many'\n")
    told = "--batch-size, --steps and --sample-every: from 1 on; --seed: from 0 on, below 2**32\n"
    for option in ("seed -1", "batch-size 0", "steps 0", "sample-every 0", f"seed {2**32}"):
        status, _, error = here(f"--dataset {folder / 'images'} --{option}")
        assert (status, error.partition("error: ")[2]) == (2, told)
    for name in ("16", "float", "broken"):
        (folder / name).mkdir()
    Image.new("I;16", (28, 28)).save(folder / "16" / "a.png")
    Image.new("F", (28, 28)).save(folder / "float" / "a.tiff")
    (folder / "broken" / "a.png").write_bytes((folder / "images" / "0.png").read_bytes()[:999])
    subjects = {"nowhere": "'nowhere'", "": "''", "16": "16/a.png", "float": "float/a.tiff", "broken": "broken/a.png"}
    for dataset, subject in subjects.items():  # "" is not the current folder
        status, _, error = here(f"--steps 1 --dataset={dataset}")
        assert (status, error.startswith(f"error: {subject}: cannot be read"), "\n" in error) == (1, True, False)
        assert ("more than 8 bits" in error) == (dataset in ("16", "float"))
    assert "assert " not in (folder / "gan_standalone.py").read_text()  # `python -O` leaves them out
    monkeypatch.setattr(gan_standalone.MNIST, "__init__", mock.Mock(side_effect=RuntimeError("Tried a:\n1\nb:\n2")))
    assert "\n" not in here("--dataset mnist")[2]
    (folder / "runs").touch()
    assert here(f"{ON_IMAGES} --steps 1")[2].startswith("error: ./runs cannot be written ([Errno 20] Not a dir")


def test_a_notebook_s_cell_runs_it_and_has_its_ctrl_c_back(folder, monkeypatch):
    """A cell has no `__file__`, and `sys.argv` holds the kernel's arguments."""
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "/root/.local/share/jupyter/kernel.json"])
    before = signal.getsignal(signal.SIGINT)
    source = (folder / "gan_standalone.py").read_text()
    assert source.count(" else [])  # of a notebook") == 1
    exec(source.replace(" else [])", f" else {f'{ON_IMAGES} --steps 2'.split()})"), {"__name__": "__main__"})
    assert load(run_of(folder))["step"] == 2
    assert signal.getsignal(signal.SIGINT) == before


def test_ctrl_c_ends_the_run_after_a_step_which_is_saved_and_a_second_one_acts_as_before(folder, here, monkeypatch):
    update, before, calls = AveragedModel.update_parameters, signal.getsignal(signal.SIGINT), itertools.count(1)

    def interrupted_in_step_3(*given):
        if next(calls) == 3:
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) == before
        update(*given)

    monkeypatch.setattr(AveragedModel, "update_parameters", interrupted_in_step_3)
    assert here(f"{ON_IMAGES} --steps 6")[0] == 130
    stopped = load(run_of(folder))
    assert (stopped["step"], stopped["average"]["n_averaged"]) == (3, 3)
    assert [path.name for path in run_of(folder).glob("samples/*")] == ["step-000003.png"]


def test_a_closed_stderr_ends_no_run(folder, here, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)  # as Python has it after `2>&-`
    assert here(f"{ON_IMAGES} --steps 1")[0] == 0
    assert load(run_of(folder))["step"] == 1


def test_of_a_folder_regular_files_are_read_but_none_hidden_linked_or_of_another_suffix(folder, here):
    images = folder / "images"
    for path in (images / ".hidden" / "deep" / "a.png", folder / "elsewhere" / "a.png", images / ".a.png"):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(images / "0.png", path)
    (images / "linked").symlink_to(folder / "elsewhere")
    (images / "linked.png").symlink_to(folder / "elsewhere" / "a.png")  # a file, which is read
    (images / "folder.png").mkdir()
    os.mkfifo(images / "fifo.png")  # which would be waited for
    (images / "notes.txt").write_text("no image")
    (images / "new.heic").write_bytes(b"of a kind that Pillow does not read")
    assert here(f"{ON_IMAGES} --steps 1")[:2] == (0, "images: 9 images; other files, left out: 2\n")
    assert load(run_of(folder))["data_shapes"] == [[9, 3, 28, 28]]


def test_its_own_samples_are_not_among_its_images_and_their_folder_is_found_from_elsewhere(folder, here, monkeypatch):
    assert here(f"{ON_IMAGES} --steps 1")[0] == 0
    assert load(run_of(folder))["options"]["dataset"] == str(folder / "images")
    for place, dataset in ((folder, "."), (folder / "images", folder)):
        monkeypatch.chdir(place)
        assert "it would get the samples of ./runs; start elsewhere" in here(f"--dataset {dataset} --steps 1")[2]


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


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before_and_is_told_in_one_line(folder, here, monkeypatch):
    save, limits = torch.save, resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit_after(state, file):
        save(state, file)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000 if state["step"] == 4 else limits[0], limits[1]))

    monkeypatch.setattr(torch, "save", limit_after)
    try:
        line = here(f"{ON_IMAGES} --steps 4 --sample-every 2")[2]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert line == "error: ./runs cannot be written ([Errno 27] File too large)"
    assert load(run_of(folder))["step"] == 2


def test_weights_that_are_not_finite_leave_the_checkpoint_before(folder, here, monkeypatch):
    update, calls = AveragedModel.update_parameters, itertools.count(1)

    def diverged_in_step_3(average, generator):
        if next(calls) == 3:
            generator[0].weight.data[0] = np.nan
        update(average, generator)

    monkeypatch.setattr(AveragedModel, "update_parameters", diverged_in_step_3)
    status, _, error = here(f"{ON_IMAGES} --steps 6 --sample-every 2")
    assert (status, "error: step 4: the weights are not finite" in error, "\n" in error) == (1, True, False)
    assert load(run_of(folder))["step"] == 2
    assert load(run_of(folder))["average"]["module.0.weight"].isfinite().all()
    assert [path.name for path in run_of(folder).glob("samples/*")] == ["step-000002.png"]


def test_a_finished_run_is_sampled_and_evaluated_by_the_tools(folder, here, untrained):
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    run = run_of(folder)
    call(sample, run, "--count=3", "--output=images.npz", "--device=cpu")
    call(evaluate, run, "--features=digits", "--device=cpu")
    assert np.load("images.npz")["images"].shape == (3, 3, 28, 28)
    (entry,) = json.loads((run / "evaluation.json").read_bytes())
    assert (entry["count"], entry["step"]) == (4, 2)


# What follows keeps the one page from drifting away from `gan_detach.py`.


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 64, 64)])
def test_its_options_defaults_and_rates_are_those_of_gan_detach(shape, folder, monkeypatch):
    images = torch.zeros(4, *shape, dtype=torch.uint8)
    monkeypatch.setattr(sys, "argv", ["gan_standalone.py"])
    monkeypatch.setattr(gan_standalone, "load_images", lambda *_: images)
    monkeypatch.setattr(gan_standalone, "tqdm", lambda steps, *_, **__: [steps[-1]])  # the last step alone
    gan_standalone.main()
    mine, ours = saved(folder / "runs"), GanOptions(augment="off").for_images(images)
    given = mine["options"]
    assert {name for name in given if given[name] != getattr(ours, name)} == {"dataset"}
    decay = linear_decay(ours.steps, ours.steps // 2)(ours.steps - 1)
    rates = [mine[name]["param_groups"][0]["lr"] for name in ("optimizer_g", "optimizer_d")]
    assert rates == [ours.lr * decay, ours.lr_d * decay]


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 64, 64), (3, 64, 64)])
def test_its_networks_are_those_of_gan_detach(shape, capsys):
    images, texts = [], []
    for make in (lambda: gan_standalone.make_pair(*shape[:2]), lambda: conv(shape, 64)):
        torch.manual_seed(0)
        generator, discriminator = (network.to(memory_format=torch.channels_last) for network in make())
        images.append((generator(torch.ones(2, 64)), discriminator(torch.ones(2, *shape))))
        texts.append(str(generator))
    assert_same(*images)
    note_layers(texts[0], {"generator": texts[1]})
    assert capsys.readouterr().out == ""  # the tools take them for the same, too


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
