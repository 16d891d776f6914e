"""A run that is killed, wherever, and resumed ends with the bits of a run that never stopped; one process trains it.

`pytest -m soak tests/scripts/test_resume.py` kills each script's process up to twice in each of ten runs.
"""

import itertools
import os
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import GANS, SMALL, call, change, contents, load, make_images, points_of
from PIL import Image
from processes import fork
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.options import GanOptions
from common.run import Run

KILLED = -signal.SIGKILL  # the exit code
EVERY = "--device cpu --log-every 3 --sample-every 5 --checkpoint-every 4"
MLP = f"--model mlp --image-size 8 --batch-size 4 {EVERY}"
DCGAN = f"--model conv --batch-size 4 {EVERY}"
# Its pools of 50 are full after 7 steps; its learning rate falls after 6.
CYCLEGAN = f"--image-size 12 --width 4 --blocks 1 --batch-size 8 --identity-weight 5 --ema 0.5 {EVERY}"


def child(script, arguments, sabotage):
    sabotage()
    call(script, *arguments.split())


def start(script, arguments, folder, sabotage=int):
    """Start a script's command line in a forked process; its output goes into `log` in `folder`."""
    folder.mkdir(exist_ok=True)
    if "--resume" not in arguments:
        arguments += f" --runs-dir {folder / 'runs'}"
    return fork(child, script, arguments, sabotage, output=folder / "log")


def finish(process, folder, status=0):
    process.join()
    assert process.exitcode == status, (folder / "log").read_text()


def run_of(folder):
    """Return the run made in `folder`, or None."""
    return next(folder.glob("runs/*/*"), None)


def train(script, arguments, folder):
    """Run a script to its end; return its run's folder."""
    finish(start(script, arguments, folder), folder)
    return run_of(folder)


def resume(script, folder, sabotage=int):
    return start(script, f"--resume {run_of(folder)}", folder, sabotage)


def weights(run):
    """Return all that a checkpoint holds of the training."""
    return load(run) | {"options": None, "command": None, "commit": None}


def curves(run):
    """Return the points of TensorBoard's curves, but the speed, and its images."""
    events = EventAccumulator(str(run), {"images": 0}).Reload()
    images = {tag: [(p.step, p.encoded_image_string) for p in events.Images(tag)] for tag in events.Tags()["images"]}
    return {tag: found for tag, found in (points_of(run) | images).items() if tag != "speed/steps_per_second"}


def pictures(run):
    return {path.name: path.read_bytes() for path in (run / "samples").iterdir()}


def assert_same(found, expected, name=""):
    if isinstance(expected, list | tuple):
        found, expected = dict(enumerate(found)), dict(enumerate(expected))
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), name
        for key in expected:
            assert_same(found[key], expected[key], f"{name}.{key}")
    else:
        assert torch.equal(found, expected) if isinstance(expected, torch.Tensor) else found == expected, name


def assert_same_run(run, whole):
    for part in (weights, curves, pictures):
        assert_same(part(run), part(whole))
    assert [path.name for path in run.rglob(".*")] == [".lock"]


def killed_after(last, wait):
    """Have this process killed `wait` times the length of a step after its `last` step since it started."""
    log, began = Run.log, []

    def logged(*given):
        began.append(time.perf_counter())
        if len(began) == last:
            delay = wait * (began[-1] - began[0]) / max(1, last - 1)
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        log(*given)

    Run.log = logged


def kill_and_resume(script, arguments, folder, draws):
    """Train to the end in spite of two SIGKILLs at random moments after the first checkpoint."""
    process = start(script, arguments, folder, partial(killed_after, draws.randint(5, 8), 3 * draws.random()))
    for sabotage in (partial(killed_after, draws.randint(1, 6), 3 * draws.random()), int):
        process.join()
        if process.exitcode == 0:  # before the kill
            return
        assert process.exitcode == KILLED, (folder / "log").read_text()
        process = resume(script, folder, sabotage)
    finish(process, folder)


CASES = {script: (script, f"{MLP} --steps 16 --augment on --mirror") for script in [*GANS, "gan_conditional"]} | {
    "cyclegan": ("cyclegan", f"{CYCLEGAN} --steps 12"),
    "conv": ("gan_detach", f"{DCGAN} --steps 9"),
    "bf16": ("gan_detach", f"{MLP} --precision bf16 --steps 12"),
}


every_case = pytest.mark.parametrize(("script", "arguments"), CASES.values(), ids=CASES)


@pytest.mark.soak
@every_case
def test_a_run_killed_at_random_moments_ends_with_the_bits_of_one_never_stopped(script, arguments, tmp_path):
    whole = train(script, arguments, tmp_path / "whole")
    seed = random.randrange(2**32)
    print(f"seed of the moments: {seed}")  # pytest shows it where the test fails
    draws = random.Random(seed)
    for number in range(10):
        folder = tmp_path / str(number)
        kill_and_resume(script, arguments, folder, draws)
        assert_same_run(run_of(folder), whole)


@every_case
def test_a_run_ended_by_a_signal_goes_on_to_the_bits_of_one_never_stopped(script, arguments, tmp_path, monkeypatch):
    def end_in_step_7(run, step, values):
        if step == 7:  # between two points of the curves and two checkpoints
            signal.raise_signal(signal.SIGTERM)
        log(run, step, values)

    log, arguments = Run.log, f"{arguments} --sample-every 7 --runs-dir".split()
    call(script, *arguments, tmp_path / "whole" / "runs")
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        patch.setattr(Run, "log", end_in_step_7)
        call(script, *arguments, tmp_path / "ended" / "runs")
    run = run_of(tmp_path / "ended")
    assert load(run)["step"] == 7
    call(script, "--resume", run)
    assert_same_run(run, run_of(tmp_path / "whole"))


def killed_in_the_second_write():
    """Have this process killed with half of its second checkpoint in the temporary file."""
    fsync, calls = os.fsync, itertools.count(1)

    def sabotaged(file):
        is_checkpoint = Path(f"/proc/self/fd/{file}").readlink().name == ".checkpoint.pt.unfinished"
        if is_checkpoint and next(calls) == 2:
            os.ftruncate(file, os.fstat(file).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(file)

    os.fsync = sabotaged


def test_a_run_killed_inside_a_write_ends_as_one_that_was_not(tmp_path):
    killed, arguments = tmp_path / "killed", f"{MLP} --steps 10"
    finish(start("gan_resample", arguments, killed, killed_in_the_second_write), killed, KILLED)
    run = run_of(killed)
    assert load(run)["step"] == 4  # the old checkpoint is whole
    assert (run / ".checkpoint.pt.unfinished").exists()
    finish(resume("gan_resample", killed), killed)
    assert_same_run(run, train("gan_resample", arguments, tmp_path / "whole"))


# Which options a run is resumed with: its own, and those that say where it goes on and how long.


go_on = partial(call, "gan_detach", "--resume")


REFUSED = {
    "gan_detach --resume {run} --lr=0.1": "--lr=0.1: the run {run} has --lr=0.005; leave it out",
    "gan_detach --resume {run} --no-hold-out": "--no-hold-out: the run {run} has --hold-out; leave it out",
    "gan_detach --resume {run} --betas 0.5 0.9": "the run {run} has --betas=(0.0, 0.9); leave it out",
    "gan_detach --resume {run} --steps 2": "--steps=2: the run {run} has done 3 already; give more",
    "gan_detach --resume {run} --runs-dir {run}": "--runs-dir={run}: the run goes on in its folder, {run}; leave",
    "gan_detach --resume {run}/nowhere": "{run}/nowhere/checkpoint.pt: not found; name the folder of a run",
    "gan_detach --resume {run}/samples": "samples/checkpoint.pt: not found",
    "gan_detach --resume {run}/checkpoint.pt": "name the folder of a run that has saved a checkpoint",
    "gan_detach --init-from {run} --image-size 8 --model mlp --z-dim 9": "not hold this generator; its networks are "
    "those of script gan_detach, model mlp, z_dim 64, data_shapes [[4000, 1, 8, 8]], classes []; take the same: ",
    "gan_conditional --init-from {run} --image-size 8 --model mlp": "does not hold this generator; its networks are",
    "cyclegan --init-from {run}": "--init-from {run}: does not hold this a_to_b; its networks are those of script gan",
    "gan_detach --init-from {run}/nowhere": "{run}/nowhere: not found",
    "cyclegan --resume {run}": "made by gan_detach.py, not by cyclegan.py; take that, or --init-from",
}


@pytest.mark.parametrize(("arguments", "told"), REFUSED.items())
def test_what_cannot_be_resumed_and_contradictions_are_refused_by_name(arguments, told, copied, refusal):
    assert told.format(run=copied) in refusal(*arguments.format(run=copied).split())


def test_a_finished_run_is_left_as_it_is_and_says_so_also_where_the_options_are_those_that_it_has(copied, outcome):
    before = contents(copied)
    _, printed, _ = outcome("gan_detach", *f"--resume {copied} --z-dim 64 --model mlp --steps 3 --betas 0 0.9".split())
    assert printed.startswith("Done: 3 steps.")
    assert contents(copied) == before


def test_a_run_on_a_folder_goes_on_from_elsewhere_and_where_the_folder_was_moved_to(tmp_path, monkeypatch, refusal):
    images = make_images(tmp_path / "here" / "images", 6)
    monkeypatch.chdir(tmp_path / "here")
    call("gan_detach", *SMALL, "--dataset", "images", "--steps", 2, "--runs-dir", tmp_path / "runs")
    (run,) = (tmp_path / "runs").glob("gan_detach/*")
    monkeypatch.chdir(tmp_path)
    go_on(run, "--steps", 3)

    images.rename(tmp_path / "moved")
    assert f"'{images}': neither a folder" in refusal("gan_detach", "--resume", run, "--steps", 4)
    go_on(run, "--steps", 4, "--dataset", "moved")
    go_on(run, "--steps", 5)
    assert (load(run)["step"], load(run)["options"]["dataset"]) == (5, str(tmp_path / "moved"))

    other = make_images(tmp_path / "other", 5)
    line = refusal("gan_detach", "--resume", run, "--steps", 6, "--dataset", other)
    assert f"--resume {run}: the data_shapes are [[5, 1, 8, 8]], but were [[6, 1, 8, 8]]; use the same data" in line
    line = refusal("gan_detach", "--resume", run, "--steps", 6, "--dataset", "mnist5k")
    assert f"--dataset=mnist5k: the run {run} has --dataset={tmp_path / 'moved'}; leave it out" in line
    assert load(run)["step"] == 5


def test_rates_and_augmentation_are_decided_by_the_images_and_told_once(tmp_path, outcome):
    (tmp_path / "images").mkdir()
    for number in range(6):
        Image.new("RGB", (9, 9), (number, 9, 0)).save(tmp_path / "images" / f"{number}.png")

    def train(augment, steps=3):
        folder = tmp_path / f"{augment}-{steps}"
        small = [*SMALL, "--dataset", tmp_path / "images", "--runs-dir", folder, "--augment", augment]
        printed[augment] = outcome("gan_detach", *small, "--steps", steps)[1]
        return next(folder.glob("gan_detach/*"))

    def weight(run):
        return next(iter(load(run)["discriminator"].values()))

    printed = {}
    auto, on, off = (weight(train(augment)) for augment in ("auto", "on", "off"))
    assert auto.equal(on) and not auto.equal(off)
    chosen = "Trains on 6 images of 3x8x8 with --lr=0.002 --lr-d=0.003"
    assert printed["auto"].startswith(f"{chosen} --augment=on\nDone: ") and printed["on"].startswith(f"{chosen}\n")
    low, high, chosen = (2e-3, 3e-3), (5e-3, 5e-3), {}
    for shape in ((9_999, 3, 32, 32), (10_000, 3, 32, 32), (5, 1, 32, 32), (5, 1, 33, 33)):
        options = GanOptions().for_images(torch.empty(shape, device="meta"))
        chosen[shape[:3]] = (options.lr, options.lr_d), options.augment
    assert [*chosen.values()] == [(low, "on"), (high, "off"), (high, "off"), (low, "off")]
    assert weight(resumed := train("auto", 2)).equal(auto) is False
    assert load(resumed)["options"]["augment"] == "on"
    assert "Trains on" not in outcome("gan_detach", "--resume", resumed, "--steps", 3)[1]
    assert weight(resumed).equal(auto)


def test_a_run_of_a_machine_with_another_device_goes_on_here(copied, refusal):
    change(copied, lambda c: c["options"].update(device="cuda:99"))
    assert "--device cuda:99: cannot be used on this machine" in refusal("gan_detach", "--resume", copied, "--steps=4")
    go_on(copied, "--steps", 4, "--device", "cpu")
    assert load(copied)["options"]["device"] == "cpu"
