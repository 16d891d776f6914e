"""What the disk and the loss do to a run; and what is no checkpoint of it: refused in one line, nothing executed."""

import errno
import os
import pickle
import resource
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import module_of
from hypothesis import given, settings
from hypothesis import strategies as st

from common.run.command_line import BadInput, launch
from common.run.options import GanOptions
from common.training_run import TrainingRun
from scripts import cyclegan, gan_detach
from scripts.tools import sample

TINY = "--model mlp --image-size 8 --batch-size 4 --device cpu"


def ending(script, arguments, capsys, monkeypatch):
    """Run a script's command line; return its exit status, what it wrote on stderr last, and whether no more."""
    module = module_of(script)
    monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit:
        launch(module.main, module.main.__annotations__["options"])
    lines = capsys.readouterr().err.splitlines()
    assert "Traceback" not in " ".join(lines)
    return exit.value.code, lines[-1], len(lines) == 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of three steps."""
    runs = tmp_path_factory.mktemp("finished")
    gan_detach.main(GanOptions(model="mlp", image_size=8, batch_size=4, steps=3, device="cpu", runs_dir=runs))
    (run,) = runs.glob("gan_detach/*")
    return run


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it."""
    return shutil.copytree(finished, tmp_path / "run")


def change(run, make):
    """Change the run's checkpoint with `make`, in place."""
    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True)
    make(checkpoint)
    torch.save(checkpoint, run / "checkpoint.pt")


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def bytes_of(run):
    return (run / "checkpoint.pt").read_bytes()


FILES = {
    "empty": lambda run: b"",
    "cut after 10 bytes": lambda run: bytes_of(run)[:10],
    "cut in half": lambda run: bytes_of(run)[: len(bytes_of(run)) // 2],
    "cut by a byte": lambda run: bytes_of(run)[:-1],
    "random": lambda run: os.urandom(10_000),
    "text": lambda run: b"this is not a checkpoint\n",
    "a pickle": lambda run: pickle.dumps({"script": "gan_detach"}),
    "a pickle that runs code": lambda run: pickle.dumps(Attack(run / "executed")),
    "zeros": lambda run: bytes(10_000),
}


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_no_checkpoint_is_refused(what, script, run, capsys, monkeypatch):
    (run / "checkpoint.pt").write_bytes(FILES[what](run))
    assert refused(script, run, capsys, monkeypatch).startswith(f"error: {run / 'checkpoint.pt'}: not a checkpoint of")


def refused(script, run, capsys, monkeypatch):
    """Return the one line that refuses the run's checkpoint; nothing else happens."""
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    arguments = ["--resume", run, "--steps", 9] if script != "sample" else [run, "--device", "cpu"]
    status, line, alone = ending(script, arguments, capsys, monkeypatch)
    assert (status, alone) == (2, True)
    assert str(run) in line
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    return line


ANOTHER_PROGRAMS = [{"model": {"weight": torch.zeros(3)}, "epoch": 3}, {"weight": torch.zeros(3)}, torch.zeros(3), [1]]


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
@pytest.mark.parametrize("content", ANOTHER_PROGRAMS, ids=["checkpoint", "weights", "tensor", "list"])
def test_another_programs_torch_file_is_refused(content, script, run, capsys, monkeypatch):
    torch.save(content, run / "checkpoint.pt")
    assert "checkpoint.pt: not a checkpoint of these scripts" in refused(script, run, capsys, monkeypatch)


OTHERS = {
    "no script": lambda c: c.pop("script"),
    "script a number": lambda c: c.update(script=3),
    "script a list": lambda c: c.update(script=["gan_detach"]),
    "no options": lambda c: c.update(options=None),
    "no data shapes": lambda c: c.update(data_shapes=[]),
    "shapes of text": lambda c: c.update(data_shapes=[["many", 1, 8, 8]]),
    "negative shapes": lambda c: c.update(data_shapes=[[4000, 1, -8, 8]]),
    "step of text": lambda c: c.update(step="3"),
}


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_that_does_not_say_what_it_is_is_refused(what, script, run, capsys, monkeypatch):
    change(run, OTHERS[what])
    assert "checkpoint.pt: not a checkpoint of these scripts" in refused(script, run, capsys, monkeypatch)


def test_code_in_a_checkpoint_is_not_run(run, capsys, monkeypatch):
    change(run, lambda c: c.update(options=Attack(run / "executed")))
    for script in ("gan_detach", "sample"):
        assert "not a checkpoint" in refused(script, run, capsys, monkeypatch)
    assert not (run / "executed").exists()


def option(**options):
    return lambda c: c["options"].update(options)


WRONG_OPTIONS = {
    "--steps": option(steps="x"),
    "--batch-size": option(batch_size={"four": 4}),
    "--lr": option(lr=None),
    "--lr nan": option(lr=float("nan")),
    "--betas": option(betas=[0.5]),
    "--betas ": option(betas=0.5),
    "--betas -": option(betas=["--help", "--help"]),
    "--model": option(model="vgg"),
    "--z-dim 1099511627776": option(z_dim=2**40),
    "--z-dim -3": option(z_dim=-3),
    "yes": option(compile="yes"),
    "--device tpu": option(device="tpu"),
    "--device": option(device=b"cpu"),
    "--steps 1.0": option(steps=1.0),
    "--steps True": option(steps=True),
    "--seed -1": option(seed=-1),
    "--runs-dir": option(runs_dir=3),
    "--resume": option(resume=["run"]),
    "with --help, which this script does not have": option(help=True),
    "with --3, which this script does not have": lambda c: c["options"].update({3: 3}),
    "more images": lambda c: c["data_shapes"][0].__setitem__(0, 3999),
    "step": lambda c: c.update(step=-1),
    "step ": lambda c: c.update(step=4),
}


@pytest.mark.parametrize("named", WRONG_OPTIONS)
def test_options_in_a_checkpoint_are_checked_before_a_run_is_resumed(named, run, capsys, monkeypatch):
    change(run, WRONG_OPTIONS[named])
    arguments = ["--resume", run]
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    status, line, alone = ending("gan_detach", arguments, capsys, monkeypatch)
    assert (status, alone) == (2, True)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    expected = {"more images": "4000"}.get(named, named)
    assert expected.strip(" -") in line


@pytest.mark.parametrize(
    "make",
    [
        option(model="vgg"),
        option(model=["mlp"]),
        option(z_dim=2**40),
        option(z_dim="64"),
        option(z_dim=-3),
        option(model="dcgan"),
        lambda c: c["options"].pop("model"),
        lambda c: [c.pop("average"), c.pop("generator")],
        lambda c: [c.pop("average"), c["generator"].clear()],
        lambda c: c.update(data_shapes=[[4000, 1, 2**20, 2**20]]),
        lambda c: c.update(a_to_b={}),
        lambda c: c.update(a_to_b={}, average_a_to_b={}, options={"width": 4, "blocks": 10**9}),
        lambda c: c.update(a_to_b={}, average_a_to_b={}, options={"width": 2**40, "blocks": 1}),
    ],
)
def test_sampling_refuses_options_and_shapes_that_are_not_those_of_the_weights(make, run, capsys, monkeypatch):
    change(run, make)
    refused("sample", run, capsys, monkeypatch)


def first(state):
    return next(iter(state))


WRONG_STATES = {
    "generator": lambda c: c.pop("generator"),
    "discriminator": lambda c: c.update(discriminator=[1, 2]),
    "generator ": lambda c: c["generator"].pop(first(c["generator"])),
    "generator  ": lambda c: c["generator"].update(extra=torch.zeros(3)),
    "generator   ": lambda c: c["generator"].update({first(c["generator"]): torch.zeros(3)}),
    "generator    ": lambda c: c["generator"].update({first(c["generator"]): "weights"}),
    "average": lambda c: c["average"].update(n_averaged=torch.zeros(())),
    "average ": lambda c: c.update(average={k: v.double() for k, v in c["average"].items()}),
    "optimizer_g": lambda c: c["optimizer_g"].clear(),
    "optimizer_g ": lambda c: c["optimizer_g"]["state"].update({99: c["optimizer_g"]["state"][0]}),
    "optimizer_g    ": lambda c: [entry.pop("exp_avg_sq") for entry in c["optimizer_g"]["state"].values()],
    "optimizer_g     ": lambda c: c["optimizer_g"]["state"][0].update(exp_avg=torch.zeros(())),
    "optimizer_g      ": lambda c: c["optimizer_g"]["state"][0].update(step=3),
    "optimizer_g       ": lambda c: c["optimizer_g"]["state"].update({0: None}),
    "optimizer_g        ": lambda c: c["optimizer_g"]["param_groups"][0].pop("betas"),
    "optimizer_g         ": lambda c: c["optimizer_g"].update(param_groups=[3]),
    "optimizer_g  ": lambda c: c["optimizer_g"]["state"][0].pop("exp_avg"),
    "optimizer_g   ": lambda c: c["optimizer_g"]["state"][0].update(exp_avg=torch.zeros(3)),
    "optimizer_d": lambda c: c["optimizer_d"]["param_groups"].append({"params": []}),
    "optimizer_d ": lambda c: c["optimizer_d"]["param_groups"][0].update(lr="fast"),
    "optimizer_d  ": lambda c: c["optimizer_d"]["param_groups"][0]["params"].pop(),
    "optimizer_d   ": lambda c: c["optimizer_d"].update(state=3, param_groups=3),
    "optimizer_d    ": lambda c: c.update(optimizer_d=c["optimizer_g"]),
}


@pytest.mark.parametrize("name", WRONG_STATES)
def test_a_state_of_other_names_shapes_or_dtypes_is_refused_before_anything_is_changed(name, run, capsys, monkeypatch):
    change(run, WRONG_STATES[name])
    line = refused("gan_detach", run, capsys, monkeypatch)
    assert f"does not hold this {name.strip()}: " in line or "not a checkpoint of these scripts" in line


@pytest.fixture(scope="module")
def finished_cyclegan(tmp_path_factory):
    """A run of CycleGAN of one step."""
    folder = tmp_path_factory.mktemp("runs")
    cyclegan.main(
        cyclegan.Options(image_size=12, width=2, blocks=1, batch_size=2, steps=1, device="cpu", runs_dir=folder)
    )
    (run,) = (folder / "cyclegan").iterdir()
    return run


WRONG_CYCLEGAN_STATES = {
    "pool_a": lambda c: c.pop("pool_a"),
    "pool_a ": lambda c: c["pool_a"].update(images=torch.zeros(51, 1, 12, 12)),
    "pool_a  ": lambda c: c["pool_a"].update(images=torch.zeros(2, 3, 12, 12)),
    "pool_a   ": lambda c: c["pool_a"].update(images=torch.zeros(2, 1, 8, 12)),
    "pool_b": lambda c: c["pool_b"].update(images=torch.zeros(3)),
    "pool_b ": lambda c: c["pool_b"].update(images=3),
    "average_a_to_b": lambda c: c["average_a_to_b"].clear(),
}


@pytest.mark.parametrize("name", WRONG_CYCLEGAN_STATES)
def test_a_wrong_pool_is_refused(name, finished_cyclegan, tmp_path, capsys, monkeypatch):
    run = shutil.copytree(finished_cyclegan, tmp_path / "run")
    change(run, WRONG_CYCLEGAN_STATES[name])
    line = refused("cyclegan", run, capsys, monkeypatch)
    assert f"does not hold this {name.strip()}: " in line or "not a checkpoint of these scripts" in line


@settings(max_examples=40)
@given(place=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
def test_a_flipped_byte_is_refused_in_words_or_does_no_harm(place, flipped, finished, tmp_path_factory):
    content = bytearray(bytes_of(finished))
    content[int(place * len(content))] ^= flipped
    path = tmp_path_factory.mktemp("flipped") / "checkpoint.pt"
    path.write_bytes(content)
    try:
        sample.main(sample.Options(path, count=2, output=path.with_name("images.npz"), device="cpu"))
        assert np.load(path.with_name("images.npz"))["images"].shape == (2, 1, 8, 8)
    except BadInput as error:
        assert str(error).startswith(str(path))


def stop_in_the_middle(arguments, tmp_path, capsys, monkeypatch):
    """Train with checkpoints every 4 steps to 1; return the line that it ends with and the run's folder."""
    arguments = [*TINY.split(), *arguments.split(), "--checkpoint-every", 4, "--runs-dir", tmp_path]
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        status, line, _ = ending("gan_detach", arguments, capsys, monkeypatch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)  # pytest writes on, perhaps into a larger file
    assert status == 1
    (run,) = tmp_path.glob("gan_detach/*")
    assert not list(run.rglob(".*"))
    return line, run


def step_with(monkeypatch, **after):
    """Make what `after` names happen in the train step of that number and in all later ones."""
    train_step, steps = gan_detach.train_step, []

    def broken(*arguments):
        steps.append(None)
        values = train_step(*arguments)
        for event, number in after.items():
            if len(steps) >= number:
                values = EVENTS[event](values, *arguments)
        return values

    monkeypatch.setattr(gan_detach, "train_step", broken)


def inf_in_a_weight(values, generator, *_):
    with torch.no_grad():
        next(generator.parameters()).view(-1)[0] = float("inf")
    return values


EVENTS = {"nan": lambda values, *_: values | {"d_loss": values["d_loss"] * float("nan")}, "inf": inf_in_a_weight}


def saved_step(run):
    return torch.load(run / "checkpoint.pt", weights_only=True)["step"]


def test_a_loss_that_is_not_finite_stops_the_run_at_the_next_log(tmp_path, capsys, monkeypatch):
    step_with(monkeypatch, nan=5)
    line, run = stop_in_the_middle("--steps 20 --log-every 3", tmp_path, capsys, monkeypatch)
    assert "error: step 6: d_loss is nan; the last checkpoint, of step 4, is " in line
    assert str(run / "checkpoint.pt") in line
    assert saved_step(run) == 4


def test_no_checkpoint_is_taken_after_a_loss_that_is_not_finite(tmp_path, capsys, monkeypatch):
    step_with(monkeypatch, nan=7)
    line, run = stop_in_the_middle("--steps 20", tmp_path, capsys, monkeypatch)
    assert "error: step 8: d_loss is nan; the last checkpoint, of step 4" in line
    assert saved_step(run) == 4


def test_no_checkpoint_is_taken_of_weights_that_are_not_finite(tmp_path, capsys, monkeypatch):
    step_with(monkeypatch, inf=4)
    line, run = stop_in_the_middle("--steps 20", tmp_path, capsys, monkeypatch)
    assert line.startswith("error: step 4: generator holds a number that is not finite; ")
    assert "has no checkpoint yet" in line
    assert not (run / "checkpoint.pt").exists()


def after_the_first_checkpoint(monkeypatch, event):
    save = TrainingRun.save

    def saved(self, step):
        save(self, step)
        if step == 4:
            event(self)

    monkeypatch.setattr(TrainingRun, "save", saved)


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_no_room_for_a_checkpoint_is_told_and_the_old_one_stays_whole(tmp_path, capsys, monkeypatch):
    after_the_first_checkpoint(monkeypatch, lambda run: limit(1_000_000))
    line, run = stop_in_the_middle("--steps 20", tmp_path, capsys, monkeypatch)
    told = f"error: {run / 'checkpoint.pt'}: {os.strerror(errno.EFBIG)}; the last checkpoint, of step 4, is "
    assert line.startswith(told)
    assert saved_step(run) == 4


def test_no_room_for_a_curve_is_told_without_the_traceback_of_tensorboards_thread(tmp_path, capsys, monkeypatch):
    def no_more_events(run):
        run.board.flush()
        (events,) = run.folder.glob("events*")
        limit(events.stat().st_size + 10)

    after_the_first_checkpoint(monkeypatch, no_more_events)
    hook = threading.excepthook
    arguments = "--steps 7 --log-every 1 --sample-every 1000"
    line, run = stop_in_the_middle(arguments, tmp_path, capsys, monkeypatch)
    assert f"{os.strerror(errno.EFBIG)}; the last checkpoint, of step 4, is " in line
    assert str(run) in line.split(";")[0]
    assert saved_step(run) == 4
    assert threading.excepthook is hook


@pytest.mark.parametrize("what", ["checkpoint.pt", "samples/step-000006.png"])
def test_a_disk_that_is_full_is_told(what, tmp_path, capsys, monkeypatch):
    def full(run):
        monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))

    after_the_first_checkpoint(monkeypatch, full)
    every = 6 if "samples" in what else 1000
    line, run = stop_in_the_middle(f"--steps 20 --sample-every {every}", tmp_path, capsys, monkeypatch)
    assert line.startswith(f"error: {run / what}: No space left; the last checkpoint, of step 4, is ")
    assert saved_step(run) == 4


def test_a_folder_that_turns_read_only_is_told_and_the_checkpoint_stays_whole(tmp_path, capsys, monkeypatch):
    def read_only(run):
        run.folder.chmod(0o500)
        if os.geteuid() == 0:  # whom no permission stops
            os.seteuid(65534)

    after_the_first_checkpoint(monkeypatch, read_only)
    user = os.geteuid()
    try:
        arguments = [*TINY.split(), "--steps", 20, "--checkpoint-every", 4, "--runs-dir", tmp_path]
        status, line, _ = ending("gan_detach", arguments, capsys, monkeypatch)
    finally:
        os.seteuid(user)
    (run,) = tmp_path.glob("gan_detach/*")
    assert status == 1
    assert f"{os.strerror(errno.EACCES)}; the last checkpoint, of step 4, is " in line
    assert saved_step(run) == 4


def test_a_folder_that_is_moved_away_is_told(tmp_path, capsys, monkeypatch):
    after_the_first_checkpoint(monkeypatch, lambda run: run.folder.rename(tmp_path / "moved"))
    arguments = [*TINY.split(), "--steps", 20, "--checkpoint-every", 4, "--runs-dir", tmp_path]
    status, line, _ = ending("gan_detach", arguments, capsys, monkeypatch)
    assert status == 1
    assert os.strerror(errno.ENOENT) in line
    assert saved_step(tmp_path / "moved") == 4


def test_the_files_of_a_write_that_was_killed_are_removed_and_no_others(run, monkeypatch):
    unfinished = [run / ".checkpoint.pt.123", run / ".config.json.4", run / "samples" / ".step-000003.png.56"]
    kept = [run / ".notes", run / "notes.123", run / ".hidden.txt"]
    for path in (*unfinished, *kept):
        path.touch()
    monkeypatch.setattr(sys, "argv", ["gan_detach", "--resume", str(run), "--steps", "4"])
    launch(gan_detach.main, GanOptions)
    assert [path.exists() for path in unfinished] == [False] * 3
    assert [path.exists() for path in kept] == [True] * 3
