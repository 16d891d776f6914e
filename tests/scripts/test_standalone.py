"""`gan_standalone.py`: used as one file in a folder of its own, and held against `gan_detach.py`."""

import ast
import json
import re
import runpy
import shutil
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers import path_of
from PIL import Image
from processes import program, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import losses
from common.models import MODELS
from common.run.command_line import launch
from common.run.options import GanOptions
from scripts import gan_detach, gan_standalone
from scripts.tools import evaluate, sample

TINY = "--batch-size 4 --z-dim 8 --device cpu --log-every 2"
ON_IMAGES = f"--dataset images --image-size 28 {TINY}"


@pytest.fixture
def folder(tmp_path):
    """A folder that holds the script and a folder of images, and nothing else."""
    shutil.copy(path_of("gan_standalone"), tmp_path)
    (tmp_path / "images" / "more").mkdir(parents=True)
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (30 + number, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / ("more" if number % 2 else "") / f"{number}.png")
    return tmp_path


def command(folder, arguments):
    """A process for which no folder of ours is on any path: -I leaves out the script's own."""
    return [sys.executable, "-I", str(folder / "gan_standalone.py"), *arguments.split()]


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """A function that runs the script in this process; returns its status, stdout and stderr."""
    monkeypatch.chdir(folder)
    before = signal.getsignal(signal.SIGINT)

    def run(arguments):
        monkeypatch.setattr(sys, "argv", ["gan_standalone.py", *arguments.split()])
        with pytest.raises(SystemExit) as end:
            runpy.run_path("gan_standalone.py", run_name="__main__")
        return end.value.code, *capsys.readouterr()

    yield run
    signal.signal(signal.SIGINT, before)


def run_of(folder):
    (run,) = folder.glob("runs/gan_standalone/*")
    return run


def checkpoint_of(folder):
    return torch.load(run_of(folder) / "checkpoint.pt", weights_only=True)


def refused(outcome, told):
    status, _, errors = outcome
    (line,) = errors.splitlines()
    assert status == 2
    assert line.startswith("error: ")
    assert told in line


def test_it_is_one_page_that_imports_nothing_but_a_few_packages():
    text = path_of("gan_standalone").read_text()
    assert len(text.splitlines()) <= 200
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add("." * node.level + node.module.split(".")[0])
    assert imported - sys.stdlib_module_names == {
        "torch",
        "torchvision",
        "tqdm",
    }  # tensorboard is behind torch's writer


def test_the_copied_file_trains_on_a_folder_of_images(folder):
    done = subprocess.run(
        command(folder, f"{ON_IMAGES} --steps 4 --sample-every 2"),
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = run_of(folder)
    assert f"{run.relative_to(folder)}" in done.stdout
    assert sorted(path.name for path in run.glob("samples/*")) == ["step-000002.png", "step-000004.png"]
    assert Image.open(run / "samples" / "step-000004.png").size == (8 * 30 + 2, 8 * 30 + 2)
    board = EventAccumulator(str(run)).Reload()
    for name in ("d_loss", "g_loss", "d_real", "d_fake"):
        assert [event.step for event in board.Scalars(name)] == [2, 4]
    assert [event.step for event in board.Images("samples")] == [2, 4]
    assert checkpoint_of(folder)["step"] == 4
    assert {path.name for path in folder.iterdir()} == {"gan_standalone.py", "images", "runs"}


def test_the_copied_file_trains_on_mnist_s_own_files(folder):
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("train", "t10k"):
        pixels = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, 12) + bytes(12))
    done = subprocess.run(command(folder, f"--steps 2 {TINY}"), cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert checkpoint_of(folder)["data_shapes"] == [[12, 1, 28, 28]]


def test_ctrl_c_ends_the_run_after_its_step_and_it_goes_on_from_there(folder, here):
    with program(*command(folder, f"{ON_IMAGES} --steps 100000 --sample-every 1")[1:], cwd=folder) as process:
        wait_until(lambda: process.poll() is not None or list(folder.glob("runs/*/*/checkpoint.pt")))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    run = run_of(folder)
    assert str(run.relative_to(folder)) in output
    step = checkpoint_of(folder)["step"]
    assert here(f"--resume {run} --steps {step}")[0] == 0
    assert here(f"--resume {run} --steps {step + 1}")[0] == 0
    assert checkpoint_of(folder)["step"] == step + 1


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.equal(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return all(map(same, one, other)) and len(one) == len(other) if isinstance(one, list | tuple) else one == other


def test_a_run_that_was_resumed_ends_with_the_bits_of_one_that_never_stopped(folder, here):
    assert here(f"{ON_IMAGES} --steps 6 --runs-dir whole --seed 3")[0] == 0
    assert here(f"{ON_IMAGES} --steps 3 --seed 3")[0] == 0
    assert here(f"--resume {run_of(folder)} --steps 6")[0] == 0
    (whole,) = folder.glob("whole/*/*")
    found, expected = checkpoint_of(folder), torch.load(whole / "checkpoint.pt", weights_only=True)
    assert found.pop("options") == expected.pop("options") | {"runs_dir": "runs"}
    assert same(found, expected)
    name = "samples/step-000006.png"
    assert (run_of(folder) / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--dataset nowhere", "--dataset nowhere: neither mnist nor a folder"),
        ("--dataset runs-of-nobody/ --steps 2", "neither mnist nor a folder"),
        (f"{ON_IMAGES} --image-size 30", "--image-size: invalid choice: 30"),
        (f"{ON_IMAGES} --steps 0", "--steps 0: must be 1 or more"),
        (f"{ON_IMAGES} --log-every 0", "--log-every 0: must be 1 or more"),
        (f"{ON_IMAGES} --seed x", "--seed: invalid int value: 'x'"),
        ("--no-such-option", "--no-such-option"),
        ("--resume nowhere", "--resume nowhere: holds no checkpoint"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(arguments, told, here, folder):
    refused(here(arguments), told)
    assert not (folder / "runs").exists()


def test_a_broken_image_is_named(here, folder):
    (folder / "images" / "broken.jpg").write_bytes(b"no image")
    refused(here(ON_IMAGES), "images/broken.jpg cannot be read")


class Executed:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("checkpoint", "told"),
    [
        ({"options": {}, "script": "gan_detach"}, "made by gan_detach.py"),
        ({"options": {"model": "mlp"}, "script": "gan_standalone"}, "--model=mlp"),
        ({"options": {"steps": "many"}, "script": "gan_standalone"}, "--steps"),
        ({"script": "gan_standalone", "options": Executed()}, "holds no checkpoint"),
        ([1, 2], "holds no checkpoint"),
        (None, "holds no checkpoint"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_in_one_line(checkpoint, told, here, folder):
    if checkpoint is None:
        (folder / "checkpoint.pt").write_bytes(b"no checkpoint")
    else:
        torch.save(checkpoint, folder / "checkpoint.pt")
    outcome = here(f"--resume {folder}")
    refused(outcome, told)
    assert "executed" not in outcome[1]


def test_a_run_keeps_its_own_options_but_for_more_steps(here, folder):
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    refused(here(f"--resume {run_of(folder)} --lr 1"), "--lr: the run has 0.002; leave the option out")
    refused(here(f"--resume {run_of(folder)} --batch-size 8"), "--batch-size: the run has 4")
    assert checkpoint_of(folder)["step"] == 2


def test_weights_that_are_not_finite_are_not_saved_over_those_that_are(here, folder):
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    kept = checkpoint_of(folder)
    kept["generator"]["1.weight"][0] = float("nan")
    torch.save(kept, run_of(folder) / "checkpoint.pt")
    before = (run_of(folder) / "checkpoint.pt").read_bytes()
    status, _, errors = here(f"--resume {run_of(folder)} --steps 4")
    assert status == 1
    assert "error: step 4: a weight is not finite" in errors
    assert (run_of(folder) / "checkpoint.pt").read_bytes() == before


@pytest.mark.parametrize("named", [False, True])
def test_a_finished_run_is_sampled_and_evaluated_by_the_tools(named, here, folder, monkeypatch):
    assert here(f"{ON_IMAGES} --steps 2")[0] == 0
    networks = ["--networks", f"{folder / 'gan_standalone.py'}:networks"] if named else []
    monkeypatch.setattr(sys, "path", [*sys.path])
    for tool, *arguments in ((sample, "--count=3", "--output=images.npz"), (evaluate, "--features=digits")):
        monkeypatch.setattr(sys, "argv", ["the tool", str(run_of(folder)), *networks, *arguments, "--device=cpu"])
        launch(tool.main, tool.Options)
    assert np.load("images.npz")["images"].shape == (3, 3, 28, 28)
    (entry,) = json.loads((run_of(folder) / "evaluation.json").read_bytes())
    assert (entry["count"], entry["step"]) == (4, 2)
    assert entry["samples"].keys() >= {"fid", "confident"}


# What follows keeps the one page from drifting away from `gan_detach.py`.


def test_its_options_are_a_subset_of_those_of_the_others(here, folder):
    help_text = here("--help")[1]
    found = set(re.findall(r"^  --([a-z-]+)", help_text, re.MULTILINE))
    assert found <= {name.replace("_", "-") for name in GanOptions.__dataclass_fields__}
    assert {"dataset", "steps", "runs-dir", "resume"} <= found
    here(f"{ON_IMAGES} --steps 2")
    shared = GanOptions()
    for name, value in checkpoint_of(folder)["options"].items():
        if f"--{name.replace('_', '-')} " not in f"{ON_IMAGES} --steps --device --runs-dir ":
            assert value == getattr(shared, name), name


def pairs(shape):
    """The pair of the one page and the pair of `common/models.py`, from the same seed."""
    torch.manual_seed(0)
    mine = gan_standalone.networks(shape, 16)
    torch.manual_seed(0)
    return mine, MODELS["conv"](shape, 16)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 56, 56), (3, 64, 64)])
def test_its_networks_are_those_of_gan_detach(shape):
    mine, ours = pairs(shape)
    for one, other in zip(mine, ours, strict=True):
        assert [p.shape for p in one.parameters()] == [p.shape for p in other.parameters()]
        assert all(map(torch.equal, one.parameters(), other.parameters()))
        assert [p.stride() for p in one.parameters()] == [p.stride() for p in other.parameters()]
    z = torch.randn(2, 16)
    assert mine[0](z).equal(ours[0](z))
    assert mine[1](ours[0](z)).equal(ours[1](ours[0](z)))


@pytest.mark.parametrize("shape", [(), (5,), (4, 1), (2, 1, 3, 3)])
def test_its_losses_are_those_of_gan_detach(shape):
    real, fake = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)) * 10
    assert gan_standalone.discriminator_loss(real, fake).equal(losses.discriminator_loss(real, fake))
    assert gan_standalone.generator_loss(fake).equal(losses.generator_loss(fake))


def test_five_steps_are_those_of_gan_detach_to_the_bit():
    ends = []
    for pair, step in zip(pairs((1, 28, 28)), (gan_standalone.train_step, gan_detach.train_step), strict=True):
        optimizers = [torch.optim.Adam(n.parameters(), lr=2e-3, betas=(0.0, 0.999)) for n in pair]
        draws = torch.Generator().manual_seed(1)
        values = []
        for _ in range(5):
            real = torch.rand(4, 1, 28, 28, generator=draws) * 2 - 1
            values.append(step(*pair, *optimizers, real, torch.randn(4, 16, generator=draws)))
        ends.append((values, [p for network in pair for p in network.parameters()]))
    (mine, my_weights), (ours, our_weights) = ends
    assert same(mine, ours)
    assert all(map(torch.equal, my_weights, our_weights))
