"""A run that is killed, wherever, and resumed ends with the bits of a run that never stopped.

    pytest -m soak tests/scripts/test_resume.py

kills each script's process up to twice in each of ten runs: some minutes.
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
from helpers import GANS, call, load
from processes import fork
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.run import Run

KILLED = -signal.SIGKILL  # the exit code
EVERY = "--log-every 3 --sample-every 5 --checkpoint-every 4"
MLP = f"--model mlp --image-size 8 --batch-size 4 {EVERY}"
DCGAN = f"--model conv --batch-size 4 {EVERY}"
# Its pools of 50 are full after 7 steps; its learning rate falls after 6.
CYCLEGAN = f"--image-size 12 --width 4 --blocks 1 --batch-size 8 --identity-weight 5 --ema 0.5 {EVERY}"
DEVICE = "--device cpu"


def child(script, arguments, sabotage):
    if sabotage:
        sabotage()
    call(script, *arguments)


def start(script, arguments, folder, sabotage=None):
    """Start a script's command line in a forked process; its output goes into `log` in `folder`."""
    folder.mkdir(exist_ok=True)
    arguments = [*arguments.split(), *DEVICE.split()]
    if "--resume" not in arguments:
        arguments += ["--runs-dir", str(folder / "runs")]
    daemon = "--dataset" not in arguments  # a daemon may not start the processes that read images
    return fork(child, script, arguments, sabotage, output=folder / "log", daemon=daemon)


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


def resume(script, folder, arguments="", sabotage=None):
    return start(script, f"--resume {run_of(folder)} {arguments}", folder, sabotage)


def leaves(state, name=""):
    """Yield what is no container in a state, by name."""
    if isinstance(state, list | tuple):
        state = dict(enumerate(state))
    if not isinstance(state, dict):
        yield name, state
        return
    for key, value in state.items():
        yield from leaves(value, f"{name}.{key}")


def weights(run):
    """Return all that a checkpoint holds of the training, by name."""
    return dict(leaves(load(run) | {"options": None, "command": None}))


def curves(run):
    """Return the points of TensorBoard's curves, but for the throughput, and its images; each start adds a text."""
    events = EventAccumulator(str(run), {"scalars": 0, "images": 0, "tensors": 0}).Reload()
    tags = events.Tags()
    values = {tag: [(p.step, p.value) for p in events.Scalars(tag)] for tag in tags["scalars"]}
    values["throughput/images_per_second"] = [step for step, _ in values["throughput/images_per_second"]]
    values |= {tag: [(p.step, p.encoded_image_string) for p in events.Images(tag)] for tag in tags["images"]}
    return values | {tag: [p.step for p in events.Tensors(tag)] for tag in tags["tensors"] if tag != "run/text_summary"}


def pictures(run):
    return {path.name: path.read_bytes() for path in (run / "samples").iterdir()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        same = torch.equal(found[name], value) if isinstance(value, torch.Tensor) else found[name] == value
        assert same, name


def assert_same_run(run, whole):
    assert_same(weights(run), weights(whole))
    assert_same(curves(run), curves(whole))
    assert_same(pictures(run), pictures(whole))
    assert [path.name for path in run.rglob(".*")] == [".lock"]


def killed_after(step, wait):
    """Have this process killed `wait` times the length of a step after it has made as many steps as `step` says."""
    log, began = Run.log, []

    def counted(*arguments):
        began.append(time.perf_counter())
        if len(began) == step:
            delay = wait * (began[-1] - began[0]) / max(1, step - 1)
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        log(*arguments)

    Run.log = counted


def kill_and_resume(script, arguments, steps, folder, draws, kills=2):
    """Train to the end in spite of as many SIGKILLs at random moments."""
    for killed in range(kills + 1):
        sabotage = partial(killed_after, draws.randint(1, steps // 2), 3 * draws.random()) if killed < kills else None
        if run_of(folder) and (run_of(folder) / "checkpoint.pt").exists():
            process = resume(script, folder, sabotage=sabotage)
        else:
            if run_of(folder):  # killed before its first checkpoint: there is nothing to go on with
                run_of(folder).rename(folder / f"lost-{killed}")
            process = start(script, arguments, folder, sabotage)
        process.join()
        if process.exitcode == 0:  # before the kill, or without one
            return
        assert sabotage, (folder / "log").read_text()
        assert process.exitcode == KILLED, (folder / "log").read_text()


PAIRS = [*GANS, "gan_conditional"]
CASES = [*((script, MLP, 16) for script in PAIRS), ("cyclegan", CYCLEGAN, 12), ("gan_detach", DCGAN, 9)]
CASES += [("gan_detach", f"{MLP} --precision bf16", 12)]
NAMES = [*PAIRS, "cyclegan", "gan_detach-dcgan", "gan_detach-bf16"]


@pytest.mark.parametrize("runs", [1, pytest.param(10, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("script", "arguments", "steps"), CASES, ids=NAMES)
def test_a_run_killed_at_random_moments_ends_with_the_bits_of_one_never_stopped(
    script, arguments, steps, runs, tmp_path
):
    arguments = f"{arguments} --steps {steps}"
    whole = train(script, arguments, tmp_path / "whole")
    seed = random.randrange(2**32)
    print(f"seed of the moments: {seed}")  # pytest shows it where the test fails
    draws = random.Random(seed)
    for number in range(runs):
        folder = tmp_path / str(number)
        kill_and_resume(script, arguments, steps, folder, draws)
        assert_same_run(run_of(folder), whole)


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


def test_a_kill_inside_a_checkpoint_write_leaves_the_old_one_whole(tmp_path):
    arguments = f"{MLP} --steps 11"
    whole = train("gan_detach", arguments, tmp_path / "whole")
    killed = tmp_path / "killed"
    finish(start("gan_detach", arguments, killed, killed_in_the_second_write), killed, KILLED)
    run = run_of(killed)
    assert weights(run)[".step"] == 4
    assert (run / ".checkpoint.pt.unfinished").exists()  # gone after resuming: `assert_same_run`
    finish(resume("gan_detach", killed), killed)
    assert_same_run(run, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_ended_by_a_signal_goes_on_to_the_same_end(number, tmp_path):
    # In step 7, in which the whole run has its points and a picture, too.
    arguments = f"{MLP} --log-every 7 --sample-every 7 --checkpoint-every 1000 --steps 13"
    whole = train("gan_detach", arguments, tmp_path / "whole")
    ended = tmp_path / "ended"
    finish(start("gan_detach", arguments, ended, partial(signalled_in_step_7, number)), ended, 128 + number)
    assert weights(run_of(ended))[".step"] == 7
    finish(resume("gan_detach", ended), ended)
    assert_same_run(run_of(ended), whole)


def signalled_in_step_7(number):
    log = Run.log

    def signalled(run, step, values):
        if step == 7:
            os.kill(os.getpid(), number)
        log(run, step, values)

    Run.log = signalled


def test_a_finished_run_given_more_steps_ends_as_one_that_had_them_from_the_start_though_it_is_killed(tmp_path):
    raised = tmp_path / "raised"
    run = train("gan_resample", f"{MLP} --steps 7", raised)
    finish(resume("gan_resample", raised, "--steps 14", killed_in_the_second_write), raised, KILLED)
    finish(resume("gan_resample", raised), raised)
    whole = train("gan_resample", f"{MLP} --steps 14", tmp_path / "whole")
    assert_same(weights(run), weights(whole))
    expected, found = pictures(whole), pictures(run)
    assert_same({name: found[name] for name in expected}, expected)
    for tag, points in curves(whole).items():
        assert set(points) <= set(curves(run)[tag])


def test_more_steps_give_cyclegan_the_learning_rates_of_a_run_that_had_them_from_the_start(tmp_path):
    run = train("cyclegan", f"{CYCLEGAN} --log-every 1 --steps 3", tmp_path)
    finish(resume("cyclegan", tmp_path, "--steps 7"), tmp_path)
    rates = [rate for _, rate in curves(run)["optimizer/learning_rate"]]
    assert rates[3:] == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])


def test_a_finished_run_is_left_as_it_is_and_says_so(tmp_path):
    run = train("gan_detach", f"{MLP} --steps 4", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    (tmp_path / "log").unlink()
    finish(resume("gan_detach", tmp_path), tmp_path)
    assert (tmp_path / "log").read_text().startswith("Done: 4 steps.")
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
