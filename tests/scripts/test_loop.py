"""What a script's loop shows, what the run does between two of its iterations, and what stops it."""

import errno
import itertools
import os
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from helpers import TRAINING, call, load, module_of, options_of, path_of, saved
from PIL import Image
from processes import PATIENCE, program
from torch.optim.swa_utils import AveragedModel

from common.errors import BadInput
from common.options import GanOptions, RunOptions
from common.run import Run
from scripts import gan_detach

TINY = {"batch_size": 2, "device": "cpu", "image_size": 8, "log_every": 1, "sample_every": 1, "checkpoint_every": 1}
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
IMAGES = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
@pytest.mark.parametrize("script", TRAINING)
def test_the_step_alone_computes_in_the_precision_asked_for_and_its_results_stay_on_the_device(
    script, device, tmp_path, monkeypatch
):
    """Pictures and whatever else a main does between two steps are in float32."""
    module, seen = module_of(script), []
    train_step, log = module.train_step, Run.log

    def precision():
        enabled = torch.is_autocast_enabled(device)
        return enabled and torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled()

    def watched_step(*given):
        seen.append(("step", *precision()))
        results = train_step(*given)
        assert all(value.device.type == device and value.isfinite() for value in results.values())
        return results

    before = precision()
    monkeypatch.setattr(module, "train_step", watched_step)
    monkeypatch.setattr(Run, "log", lambda *given: [seen.append(("log", *precision())), log(*given)])
    small = {"width": 2, "blocks": 1, "halvings": 1} if script == "cyclegan" else {"model": "mlp"}
    module.main(options_of(script)(**TINY | {"device": device}, **small, steps=2, precision="bf16", runs_dir=tmp_path))
    assert seen == [("step", torch.bfloat16, False), ("log", False, True)] * 2
    assert precision() == before


def test_pictures_are_made_in_eval_mode_and_each_module_gets_its_own_mode_back(tmp_path):
    frozen, trained = torch.nn.BatchNorm2d(1).eval(), torch.nn.Dropout()
    network = torch.nn.Sequential(frozen, trained)
    modes = []

    def picture():
        modes.append([module.training for module in network.modules()])
        return torch.zeros(1, 1, 8, 8)

    run = Run("script.py", GanOptions(**TINY, steps=2, runs_dir=tmp_path))
    for step, _ in run.steps(IMAGES, state={"network": network}, pictures={"picture": picture}):
        assert (network.training, frozen.training, trained.training) == (True, False, True)
        run.log(step, {})
    assert modes == [[False] * 3] * 3


def steps_of(folder, steps=3, state=None, data=IMAGES, pictures=None, **options):
    """The loop of a run that needs nothing but `RunOptions`."""
    run = Run("script.py", RunOptions(batch_size=4, steps=steps, device="cpu", runs_dir=folder, **options))
    return run.steps(data, state=state or {}, pictures=pictures or {})


def test_runs_leave_the_signal_handlers_as_they_were(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]  # ignored in some shells
    list(steps_of(tmp_path))
    steps = steps_of(tmp_path)
    next(steps)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        next(steps)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_trains_in_a_thread(tmp_path):
    steps = []
    thread = threading.Thread(target=lambda: steps.extend(step for step, _ in steps_of(tmp_path)))
    thread.start()
    thread.join()
    assert steps == [1, 2, 3]


def test_a_generator_of_random_numbers_is_part_of_the_state(tmp_path):
    def drawn(folder, steps, **options):
        own = torch.Generator().manual_seed(3)
        return [torch.rand(1, generator=own).item() for _ in steps_of(folder, steps, {"own": own}, **options)]

    whole = drawn(tmp_path / "whole", 5)
    first = drawn(tmp_path / "parts", 2)
    (run,) = tmp_path.glob("parts/*/*")
    assert first + drawn(tmp_path / "parts", 5, resume=run) == whole


UNLOADABLE = SimpleNamespace(state_dict=lambda: {"path": Path("x")})


@pytest.mark.parametrize("state", [{"own": 3}, {"own": UNLOADABLE}, {"step": torch.Generator()}])
def test_what_no_checkpoint_can_hold_is_refused_by_name_before_the_first_step(state, tmp_path):
    with pytest.raises(BadInput, match=f"state '{next(iter(state))}': cannot be in a checkpoint: "):
        next(steps_of(tmp_path, state=state))
    assert not list(tmp_path.iterdir())


def test_what_is_trained_and_left_out_of_the_state_is_refused_by_name_before_the_first_step(tmp_path):
    network, frozen = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(BadInput, match=r"network: is not in the `state` .* freeze it by requires_grad_"):
        next(steps_of(tmp_path))
    inside = torch.nn.Sequential(network, frozen)
    optimizer = torch.optim.SGD(network.parameters())
    with pytest.raises(BadInput, match=r"optimizer: is not in the `state` of run.steps, .* hold it; add it"):
        next(steps_of(tmp_path, state={"inside": inside}))
    assert not list(tmp_path.iterdir())
    assert next(steps_of(tmp_path, state={"inside": inside, "optimizer": optimizer}))[0] == 1


def test_what_is_trained_is_found_in_a_list_and_an_average_also_where_it_is_frozen(tmp_path):
    networks = [torch.nn.Linear(2, 2)]
    with pytest.raises(BadInput, match="networks: is not in the `state`"):
        next(steps_of(tmp_path))
    networks[0].requires_grad_(False)
    average = AveragedModel(networks[0])
    with pytest.raises(BadInput, match="average: is not in the `state`"):
        next(steps_of(tmp_path))
    assert next(steps_of(tmp_path, state={"average": average}))[0] == 1


def left_after(last, act):
    """Return a script whose main calls `act` when step `last` is logged, and leaves its loop if that returns."""

    @dataclass(frozen=True)
    class Options(RunOptions):
        pass

    def main(options: Options):
        run = Run("script.py", options)
        weights = torch.nn.Linear(1, 1, bias=False)
        for step, _ in run.steps(IMAGES, state={"weights": weights}, pictures={}):
            weights.weight.data.fill_(step)
            run.log(step, {"loss": float(step)})
            if step == last:
                act()
                break

    return SimpleNamespace(__name__="script", main=main, __doc__=None)


ARGUMENTS = "--steps 9 --batch-size 4 --device cpu --log-every 2 --runs-dir"


def test_break_saves_the_last_step_that_was_logged_and_says_how_to_go_on(tmp_path, capsys):
    call(left_after(3, lambda: None), *ARGUMENTS.split(), tmp_path)
    checkpoint = saved(tmp_path)
    assert (checkpoint["step"], checkpoint["weights"]["weight"].item()) == (3, 3)
    (run,) = tmp_path.glob("script/*")
    printed = capsys.readouterr().out
    assert printed.startswith("Interrupted after step 3.") and f"--resume {run}" in printed
    call(left_after(5, lambda: None), "--resume", run)
    assert saved(tmp_path)["step"] == 5


def test_an_error_in_the_loop_saves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        call(left_after(3, lambda: 1 / 0), *ARGUMENTS.split(), tmp_path)
    (run,) = tmp_path.glob("script/*")
    assert not (run / "checkpoint.pt").exists()
    FileLock(run / ".lock", blocking=False).acquire()  # and the folder is free


def test_more_steps_are_kept_even_if_the_resumed_run_makes_none(tmp_path):
    list(steps_of(tmp_path))
    (run,) = tmp_path.glob("script/*")
    next(steps_of(tmp_path, 9, resume=run))
    assert (load(run)["step"], load(run)["options"]["steps"]) == (3, 9)


def test_a_run_resumed_in_the_second_in_which_it_began_has_the_last_file_of_its_events(tmp_path):
    list(steps_of(tmp_path, 1))
    (events,) = tmp_path.glob("script/*/events*")
    older = events.rename(events.with_name(f"events.out.tfevents.{int(time.time())}.zzz"))  # of any other process
    list(steps_of(tmp_path, resume=events.parent))
    assert max(events.parent.glob("events*")) > older


def test_pictures_may_have_other_sizes_and_channels_and_there_may_be_none(tmp_path, capsys):
    sizes = {"small": lambda: torch.ones(2, 1, 8, 8), "big": lambda: torch.ones(2, 3, 16, 16)}
    list(steps_of(tmp_path, 1, pictures=sizes))
    (picture,) = tmp_path.glob("script/*/samples/step-000001.png")
    assert Image.open(picture).size == (2 * 34 + 2, 20 + 36)  # of each: twice the size, and a frame
    assert "Samples:" in capsys.readouterr().out
    list(steps_of(tmp_path, 1))
    assert "Samples:" not in capsys.readouterr().out


def test_data_options_and_a_precision_of_another_kind_are_refused(tmp_path):
    for data in ([torch.zeros(1, 8, 8)], range(3)):
        with pytest.raises(BadInput, match=r"data are a tensor, LabeledImages or StreamedImages, not a (list|range)"):
            next(steps_of(tmp_path, data=data))
    with pytest.raises(BadInput, match="--precision fp16: must be fp32 or bf16"):
        next(steps_of(tmp_path, precision="fp16"))
    with pytest.raises(BadInput, match="SimpleNamespace: derive the options of a script from RunOptions"):
        Run("script.py", SimpleNamespace(batch_size=4))


def test_a_run_that_another_process_continues_before_the_lock_is_taken_goes_on_from_there(tmp_path, monkeypatch):
    list(steps_of(tmp_path))
    (run,) = tmp_path.glob("script/*")
    enter_folder = Run.enter_folder

    def late(self, opened):
        monkeypatch.setattr(Run, "enter_folder", enter_folder)
        list(steps_of(tmp_path, 5, resume=run))
        return enter_folder(self, opened)

    monkeypatch.setattr(Run, "enter_folder", late)
    steps = steps_of(tmp_path, 9, resume=run)
    assert next(steps)[0] == 6
    assert load(run)["options"]["steps"] == 9  # even if it is killed now


# What stops a run: a loss that is not finite, a full disk, Ctrl-C as it starts; and no closed output does.

SMALL = "--model mlp --image-size 8 --batch-size 4 --device cpu"


def stop_in_the_middle(arguments, tmp_path, outcome):
    """Train with checkpoints every 4 steps to 1; return the line that it ends with and the run's folder."""
    arguments = [*SMALL.split(), *arguments.split(), "--checkpoint-every", 4, "--runs-dir", tmp_path]
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        status, _, errors = outcome("gan_detach", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)  # pytest writes on, perhaps into a larger file
    assert status == 1
    line = errors.splitlines()[-1]
    (run,) = tmp_path.glob("gan_detach/*")
    assert [path.name for path in run.rglob(".*")] == [".lock"]
    assert load(run)["step"] == 4
    return line, run


def nan_as_loss(values, _):
    return values | {"d_loss": values["d_loss"] * float("nan")}


def inf_in_a_weight(values, generator):
    next(generator.parameters()).data.view(-1)[0] = float("inf")
    return values


@pytest.mark.parametrize(("event", "first", "name"), [(nan_as_loss, 5, "d_loss"), (inf_in_a_weight, 8, "generator")])
def test_what_is_not_finite_stops_the_run_at_its_next_checkpoint(event, first, name, tmp_path, monkeypatch, outcome):
    train_step, steps = gan_detach.train_step, itertools.count(1)

    def broken(generator, *given):
        values = train_step(generator, *given)
        return event(values, generator) if next(steps) >= first else values

    monkeypatch.setattr(gan_detach, "train_step", broken)
    line, _ = stop_in_the_middle("--steps 20", tmp_path, outcome)
    assert line == f"error: step 8: {name} is not finite, so no checkpoint is written; try a lower --lr"


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def no_room_for_a_curve(run):
    run.board.flush()
    (events,) = run.folder.glob("events*")
    limit(events.stat().st_size + 10)


NO_ROOM = [
    (lambda _: limit(1_000_000), "--steps 20", ": '{run}/checkpoint.pt'"),
    (no_room_for_a_curve, "--steps 7 --log-every 1 --sample-every 1000", ""),
]


@pytest.mark.parametrize(("event", "arguments", "named"), NO_ROOM)
def test_a_full_disk_is_told_in_one_line_and_the_last_checkpoint_stays(
    event, arguments, named, tmp_path, monkeypatch, outcome
):
    def save_once(self, step):
        save(self, step)
        if step == 4:
            event(self)

    save, hook = Run.save, threading.excepthook
    monkeypatch.setattr(Run, "save", save_once)
    line, run = stop_in_the_middle(arguments, tmp_path, outcome)
    assert line == f"error: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}" + named.format(run=run)
    assert threading.excepthook is hook  # and of TensorBoard's thread there is no traceback


def test_ctrl_c_while_the_data_are_loaded_ends_the_process_without_a_word(tmp_path, monkeypatch, outcome):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr(gan_detach, "load_images", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert outcome("gan_detach", *SMALL.split(), "--steps", 1, "--runs-dir", tmp_path / "runs") == (130, "", "")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_run_trains_where_it_can_print_nowhere(closed, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, closed, None)  # as Python has it for `>&-`
    call("gan_detach", *SMALL.split(), "--steps", 1, "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 1


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
def test_a_full_stdout_is_told_in_one_line_and_the_results_are_whole(script, run, tmp_path):
    arguments = (
        [*SMALL.split(), "--steps", 1, "--runs-dir", tmp_path / "runs"]
        if script == "gan_detach"
        else [run, "--device", "cpu"]
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [path_of(script), *arguments]
    with Path("/dev/full").open("w") as file, program(*command, stdout=file, env=environment) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == f"error: stdout: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}"
    assert "Exception ignored" not in errors
    assert saved(tmp_path / "runs")["step"] == 1 if script == "gan_detach" else (run / "samples.png").exists()
