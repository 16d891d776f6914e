"""What a script's loop shows, what the run does between two of its iterations, and what stops it."""

import errno
import itertools
import multiprocessing
import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from filelock import FileLock
from helpers import ROOT, SMALL, TRAINING, call, contents, load, logged, module_of, open_run, points_of, saved, steps_of
from PIL import Image
from processes import PATIENCE, ended, fork, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.optim.swa_utils import AveragedModel

from common import launch
from common.errors import BadInput, Stopped, show_end
from common.launch import describe_origin
from common.options import RunOptions
from common.run import Run
from scripts import gan_detach

TWO_STEPS = "--batch-size 2 --image-size 8 --steps 2 --log-every 1 --sample-every 1 --checkpoint-every 1"
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

    def watched_step(*given, **weights):
        seen.append(("step", *precision()))
        results = train_step(*given, **weights)
        assert all(value.device.type == device and value.isfinite() for value in results.values())
        return results

    before = precision()
    monkeypatch.setattr(module, "train_step", watched_step)
    monkeypatch.setattr(Run, "log", lambda *given: [seen.append(("log", *precision())), log(*given)])
    small = "--width 2 --blocks 1 --halvings 1" if script == "cyclegan" else "--model mlp"
    call(script, *f"{TWO_STEPS} {small} --precision bf16 --device {device} --runs-dir {tmp_path}".split())
    assert seen == [("step", torch.bfloat16, False), ("log", False, True)] * 2
    assert precision() == before


def test_pictures_are_made_in_eval_mode_and_each_module_gets_its_own_mode_back(tmp_path):
    frozen, trained = torch.nn.BatchNorm2d(1).eval(), torch.nn.Dropout()
    network = torch.nn.Sequential(frozen, trained)
    modes = []

    def picture():
        modes.append([module.training for module in network.modules()])
        return torch.zeros(1, 1, 8, 8)

    for _ in steps_of(tmp_path, IMAGES, state={"network": network}, pictures={"picture": picture}, sample_every=1):
        assert (network.training, frozen.training, trained.training) == (True, False, True)
    assert modes == [[False] * 3] * 4


def test_a_layer_that_does_more_as_it_changes_its_mode_trains_on_after_a_picture(tmp_path):
    class Merging(torch.nn.Linear):  # as LoRA's layers do
        is_merged = False

        def train(self, mode=True):
            self.is_merged = not mode
            return super().train(mode)

    network, merged = torch.nn.Sequential(Merging(2, 2), torch.nn.Sequential(Merging(2, 2)).eval()), []

    def picture():
        merged.append([layer.is_merged for layer in (network[0], network[1][0])])
        return torch.zeros(1, 1, 8, 8)

    for _ in steps_of(tmp_path, IMAGES, state={"network": network}, pictures={"picture": picture}, sample_every=1):
        assert (network[0].is_merged, network[1][0].is_merged) == (False, True)
    assert merged == [[True, True]] * 4


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
HANDLED = [(number, signal.default_int_handler) for number in SIGNALS]


@pytest.mark.parametrize(("number", "handler"), [*HANDLED, (signal.SIGHUP, signal.SIG_IGN)])
def test_a_signal_saves_and_ends_a_run_but_a_hangup_under_nohup_and_handlers_are_as_before(number, handler, tmp_path):
    before = [signal.signal(each, handler) for each in SIGNALS]
    is_ignored = handler == signal.SIG_IGN
    try:
        with nullcontext() if is_ignored else pytest.raises(SystemExit, match=str(128 + number)):
            for _ in steps_of(tmp_path, IMAGES):
                os.kill(os.getpid(), number)
        assert saved(tmp_path)["step"] == (3 if is_ignored else 1)
        assert [signal.getsignal(each) for each in SIGNALS] == [handler] * 3
    finally:
        for each, own in zip(SIGNALS, before, strict=True):
            signal.signal(each, own)


def test_a_handler_of_the_script_stays_and_those_of_a_loop_end_with_its_run_also_where_its_generator_lives_on(tmp_path):
    received = []
    before = signal.signal(signal.SIGTERM, lambda *_: received.append("own"))
    try:
        with open_run(tmp_path) as run:
            loop = run.steps(IMAGES, state={}, pictures={})
            for _ in loop:
                assert signal.getsignal(signal.SIGINT) != signal.default_int_handler
                os.kill(os.getpid(), signal.SIGTERM)
                break
        assert received == ["own"]
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_bar_goes_to_a_stream_that_can_write_alone(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=lines.append, flush=lambda: None))
    logged(tmp_path, lambda step: {"loss": 1.0}, IMAGES)
    assert "3/3" in "".join(lines)


def write_and_wait(writer):
    os.write(writer, b"x")
    time.sleep(PATIENCE)


def train_beside_a_worker(folder):
    """End a process that the loop has forked, as multiprocessing does."""
    for _ in steps_of(folder, IMAGES, steps=1):
        reader, writer = os.pipe()
        worker = multiprocessing.get_context("fork").Process(target=write_and_wait, args=(writer,))
        worker.start()
        os.read(reader, 1)  # Python loses a signal that comes while it forks
        worker.terminate()
        worker.join()
        assert worker.exitcode == -signal.SIGTERM


def test_a_process_that_the_loop_has_forked_ends_by_a_signal(tmp_path):
    assert ended([fork(train_beside_a_worker, tmp_path, output=tmp_path / "out", daemon=False)]) == [0]


def test_a_run_whose_terminal_is_closed_is_saved(tmp_path):
    ours, theirs = pty.openpty()
    arguments = [*SMALL, "--steps", 10**6, "--log-every", 1, "--runs-dir", tmp_path]
    process = fork(call, "gan_detach", *arguments, output=os.ttyname(theirs))
    wait_until(lambda: not process.is_alive() or list(tmp_path.glob("*/*/samples/*")))
    for terminal in (ours, theirs):
        os.close(terminal)  # from now on every write to it fails
    os.kill(process.pid, signal.SIGHUP)
    assert ended([process]) == [128 + signal.SIGHUP]
    assert saved(tmp_path)["step"] > 0


def test_a_run_trains_in_a_thread(tmp_path):
    steps = []
    thread = threading.Thread(target=lambda: steps.extend(step for step, _ in steps_of(tmp_path, IMAGES)))
    thread.start()
    thread.join()
    assert steps == [1, 2, 3]


def test_a_layer_that_is_another_than_before_is_noted_as_a_run_is_resumed_or_begins_with_its_weights(tmp_path, capsys):
    def train(layer, **options):
        list(steps_of(tmp_path, state={"network": torch.nn.Sequential(torch.nn.Linear(2, 2), layer)}, **options))
        return capsys.readouterr().out

    train(torch.nn.ReLU())
    (run,) = tmp_path.glob("script/*")
    assert "note: network" not in train(torch.nn.ReLU(), resume=run, steps=4)
    for options in ({"init_from": run}, {"resume": run, "steps": 5}):
        assert "note: network had ReLU(), not Tanh(): is a layer changed" in train(torch.nn.Tanh(), **options)


def test_a_layer_that_shows_where_an_object_lies_in_memory_is_no_other_layer(tmp_path, capsys):
    def train(function, **options):
        layer = torch.nn.Linear(2, 2)
        layer.extra_repr = lambda: f"function={function}"
        list(steps_of(tmp_path, state={"network": torch.nn.Sequential(layer)}, **options))
        return capsys.readouterr().out

    train(lambda: None)
    (run,) = tmp_path.glob("script/*")
    assert "note: network" not in train(lambda: None, resume=run, steps=4)


def test_what_the_run_has_used_before_main_is_not_chosen_there(tmp_path):
    with open_run(tmp_path) as run:
        run.options = RunOptions(batch_size=run.options.batch_size + 1, device="cpu")
        with pytest.raises(BadInput, match=r"--batch-size=\d+: chosen by main, too late"):
            next(run.steps(torch.zeros(9, 1), state={}, pictures={}))


def test_the_seed_fixes_what_is_drawn_for_the_initial_weights(tmp_path):
    drawn = []
    for seed in (0, 0, 1):
        with open_run(tmp_path, seed=seed):
            drawn.append(torch.rand(1).item())
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_session_has_its_runs_in_a_with_alone_and_in_a_folder_of_the_name_that_it_gave(tmp_path):
    options = RunOptions(steps=1, runs_dir=tmp_path, device="cpu")
    with pytest.raises(AttributeError, match="steps"):  # `break` would save nothing
        launch.open_run("gan_v1.5", options).steps(state={}, pictures={})
    with launch.open_run("gan_v1.5", options) as run:
        for step in run.steps(state={}, pictures={}):
            run.log(*step, {})
    assert run.folder.parent == tmp_path / "gan_v1.5"
    with pytest.raises(BadInput, match="begins with ~"), launch.open_run("x", RunOptions(runs_dir=Path("~/runs"))):
        pass
    assert launch.name_of("scripts/gan_v1.5.py") == launch.name_of("scripts/gan_v1.5") == "gan_v1.5"


UNLOADABLE = SimpleNamespace(state_dict=lambda: {"path": Path("x")})
NEVER_LOADED = SimpleNamespace(state_dict=dict)


@pytest.mark.parametrize(
    "state", [{"own": torch.Generator()}, {"own": UNLOADABLE}, {"step": torch.nn.Linear(1, 1)}, {"own": NEVER_LOADED}]
)
def test_what_no_checkpoint_can_hold_is_refused_by_name_before_the_first_step(state, tmp_path):
    with pytest.raises(BadInput, match=f"state '{next(iter(state))}': cannot be in a checkpoint: "):
        next(steps_of(tmp_path, state=state))
    assert not list(tmp_path.iterdir())


def test_a_rate_that_numpy_has_computed_is_saved_as_a_number_and_what_no_checkpoint_holds_is_refused(tmp_path):
    network = torch.nn.Linear(1, 1)
    state = {"network": network, "optimizer": torch.optim.SGD(network.parameters(), lr=0.1)}
    for _ in steps_of(tmp_path / "rate", state=state, steps=2):
        state["optimizer"].param_groups[0]["lr"] = np.float64(0.05)
    assert type(saved(tmp_path / "rate")["optimizer"]["param_groups"][0]["lr"]) is float
    state["optimizer"].param_groups[0]["lr"] = 0.05
    with pytest.raises(BadInput, match="what the run holds cannot be saved: Unsupported global: GLOBAL pathlib"):
        for step, *_ in steps_of(tmp_path / "other", state=state, steps=2, checkpoint_every=1):
            state["optimizer"].param_groups[0]["momentum"] = [0, Path("x")][step - 1]
    assert saved(tmp_path / "other")["step"] == 1


def test_what_is_trained_in_the_loop_and_left_out_of_the_state_is_refused_at_its_first_step(tmp_path):
    """Wherever the loop is, and whatever trains: in a helper, by an optimizer of a list, on a bare parameter."""
    network, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 2)
    parts = {"network": network, "optimizer": torch.optim.SGD(network.parameters()), "other": other}
    parts["both"] = torch.optim.Adam([*network.parameters(), *other.parameters()])

    def train(optimizer, *names, resume=None):
        for _ in steps_of(tmp_path, state={name: parts[name] for name in names}, steps=4, resume=resume):
            optimizer.step()

    for trained, names, lost in (
        ("optimizer", ["network"], "SGD"),
        ("optimizer", ["optimizer"], r"weight \[3, 2\]"),
        ("both", ["network", "both"], r"weight \[2, 2\]"),
    ):
        with pytest.raises(BadInput, match=f"lacks what the loop trains: {lost}; add it"):
            train(parts[trained], *names)
    assert not list(tmp_path.glob("*/*/checkpoint.pt"))
    with open_run(tmp_path / "before", steps=1) as run:
        list(run.steps(state={name: parts[name] for name in ("network", "optimizer")}, pictures={}))
    with pytest.raises(BadInput, match="lacks what the loop trains: SGD; add it"):
        train(parts["optimizer"], "network")  # though `run`, which has ended, saved it
    train(parts["both"], "network", "other", "both")
    assert max(load(run)["step"] for run in tmp_path.glob("script/*") if list(run.glob("*.pt"))) == 4


def test_a_main_that_ends_without_its_loop_says_that_nothing_was_trained(tmp_path, monkeypatch, capsys):
    def main(options: RunOptions, run: Run) -> None:
        yield from run.steps(state={}, pictures={})  # makes it a generator, whose body nobody runs

    monkeypatch.setattr(gan_detach, "main", main)
    call(gan_detach, "--runs-dir", tmp_path)
    assert "note: the run has ended without a loop over run.steps: nothing was trained" in capsys.readouterr().out


def test_what_a_loop_leaves_out_is_told(tmp_path, capsys):
    network, picture = torch.nn.Linear(2, 2), [torch.full((2, 1, 8, 8), value) for value in (254.0, float("nan"))]
    state = {"network": network, "optimizer": torch.optim.SGD(network.parameters())}
    state["average"] = AveragedModel(network)
    list(steps_of(tmp_path, state=state, pictures={"a": lambda: picture[0], "b": lambda: picture[1]}))
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert [note.split(";")[0].split(":")[1] for note in notes] == [
        " average counts as the average of generator, which `state` lacks",
        " pictures['a'] holds values up to 254",
        " pictures['b'] holds values up to nan",
        " there are no curves of the last steps",
    ]
    assert saved(tmp_path)["averages"] == {}  # no tool takes one that was never updated
    with open_run(tmp_path) as run:
        for step in run.steps(state=state | {"generator": network}, pictures={}):
            state["average"].update_parameters(network)
            run.log(*step, {"x": 1.0})
        assert "note" not in capsys.readouterr().out
        [state["optimizer"].step() for _ in range(2)]
    assert capsys.readouterr().out.count("steps after the loop over run.steps: no checkpoint will hold that") == 1
    assert load(run.folder)["averages"] == {"generator": "average"}
    with pytest.raises(BadInput, match="--precision bf16: has no effect without"):
        list(steps_of(tmp_path, precision="bf16"))
    with pytest.raises(BadInput, match="has no effect without"), open_run(tmp_path, precision="bf16") as run:
        with run.precision():  # before the loop, as to look at shapes
            network(torch.ones(1, 2))
        list(run.steps(state={}, pictures={}))


def test_a_resumed_run_keeps_the_images_and_the_settings_of_its_optimizers(tmp_path, capsys):
    network = torch.nn.Linear(2, 2)

    def train(rate, images, **options):
        state = {"network": network, "optimizer": torch.optim.SGD(network.parameters(), rate)}
        for _ in steps_of(tmp_path, images, state=state, **options):
            state["optimizer"].param_groups[0] |= {"lr": 0.5, "weight_decay": 0.5}  # as a schedule does; it was 0

    train(0.25, IMAGES)
    (run,) = tmp_path.glob("script/*")
    with pytest.raises(BadInput, match=r"its lr of group 0 is 0\.1, but was 0\.25"):
        train(0.1, IMAGES, resume=run, steps=4)
    train(0.25, IMAGES, resume=run, steps=4)
    assert not load(run)["images_replaced"]
    assert "note: as many images" not in capsys.readouterr().out
    train(0.25, IMAGES.clone().fill_(7), resume=run, steps=5)
    assert "note: as many images as before, but not the same to the bit" in capsys.readouterr().out
    assert load(run)["images_replaced"]
    train(0.25, IMAGES.clone().fill_(7), resume=run, steps=6)
    assert load(run)["images_replaced"]  # and not only until it is resumed once more


def around(optimizer):
    """What has the groups and the state of an optimizer, as a wrapper of accelerate's."""
    names = ("param_groups", "state_dict", "load_state_dict")
    return SimpleNamespace(**{name: getattr(optimizer, name) for name in names})


def test_what_pictures_and_measures_train_is_free_and_so_is_what_wraps_an_optimizer(tmp_path):
    network, judge = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    optimizer, own = (torch.optim.SGD(each.parameters()) for each in (network, judge))
    pictures = {"samples": lambda: [own.step(), torch.zeros(1, 1, 8, 8)][1]}
    for _ in steps_of(tmp_path, state={"network": network, "optimizer": around(optimizer)}, pictures=pictures):
        optimizer.step()
    own.step()  # and after the run


def test_what_is_around_an_optimizer_has_its_curves_and_its_settings_for_each_group(tmp_path):
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])

    def train(rate, **options):
        groups = [{"params": layers[0].parameters()}, {"params": layers[1].parameters(), "lr": rate}]
        optimizer = torch.optim.SGD(groups, 0.5)
        list(steps_of(tmp_path, state={"network": layers, "optimizer": around(optimizer)}, **options))

    train(0.25, steps=1)
    (run,) = tmp_path.glob("script/*")
    curves = {name: [value for _, value in values] for name, values in points_of(run).items() if "rate" in name}
    tag = "optimizer/learning_rate/optimizer"
    assert curves == {tag: [0.5], f"{tag}/group_1": [0.25]}
    with pytest.raises(BadInput, match=r"its lr of group 1 is 0\.125, but was 0\.25"):
        train(0.125, resume=run, steps=2)


class Wrapper(torch.optim.Optimizer):
    """Steps by another optimizer, whose `param_groups` it shares, and whose state is in no `state_dict`, as SAM."""

    def __init__(self, inner):
        super().__init__(inner.param_groups[0]["params"], {})
        self.inner, self.param_groups = inner, inner.param_groups

    def step(self):
        for weight in self.param_groups[0]["params"]:
            self.state[weight]["old"] = weight.detach().clone()
        self.inner.step()


def test_an_optimizer_inside_of_another_that_does_not_save_its_state_is_refused(tmp_path):
    network = torch.nn.Linear(2, 2)
    inner = torch.optim.SGD(network.parameters(), momentum=0.5)
    state = {"network": network, "optimizer": Wrapper(inner)}

    def train():
        for _ in steps_of(tmp_path, state=state):
            network(torch.ones(1, 2)).sum().backward()
            state["optimizer"].step()

    with pytest.raises(BadInput, match="lacks what the loop trains: SGD"):  # at its second step, which uses the first's
        train()
    state["inner"] = inner
    train()


def test_values_logged_outside_of_their_step_are_not_lost_without_a_word(tmp_path, capsys):
    with open_run(tmp_path) as run:
        run.log(0, {"x": 1.0})
        for (step,) in run.steps(state={}, pictures={}):
            with pytest.raises(ValueError, match=f"run.log of step {8 * step} in the loop body of step {step}"):
                run.log(8 * step, {"x": 1.0})
            run.log(step, {"x": 1.0})
        run.log(3, {"y": 1.0})
    with open_run(tmp_path) as run:
        for (step,) in run.steps(state={}, pictures={}):
            run.log(step, {"x": 1.0})
            break
        run.log(3, {"y": 1.0})
    notes = [line for line in capsys.readouterr().out.splitlines() if "outside of the loop" in line]
    assert [note.split(",")[0] for note in notes] == [f"note: run.log of step {step}" for step in (0, 3, 3)]
    assert load(run.folder)["step"] == 1  # `break` after run.log ends the body


def left_after(last, act):
    """Return a script whose main calls `act` when step `last` is logged, and leaves its loop if that returns."""

    def main(options: RunOptions, run: Run):
        weights = torch.nn.Linear(1, 1, bias=False)
        for step, _ in run.steps(IMAGES, state={"weights": weights}, pictures={}):
            weights.weight.data.fill_(step)
            run.log(step, {"loss": float(step)})
            if step == last:
                act()
                break
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # as before the loop
        with pytest.raises(RuntimeError, match=r"a run has one loop over run\.steps"):
            next(run.steps(state={}, pictures={}))

    return SimpleNamespace(__name__="script", __file__="/script.py", main=main, __doc__=None)


ARGUMENTS = "--steps 9 --batch-size 4 --device cpu --log-every 2 --runs-dir"


def test_break_saves_the_last_step_that_was_logged_also_in_another_folder_and_says_how_to_go_on(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path.parent)
    call(left_after(3, lambda: os.chdir("/")), *ARGUMENTS.split(), tmp_path.name)
    checkpoint = saved(tmp_path)
    assert (checkpoint["step"], checkpoint["weights"]["weight"].item()) == (3, 3)
    (run,) = tmp_path.glob("script/*")
    printed = capsys.readouterr().out
    assert printed.startswith("Interrupted after step 3.") and f"--resume {run}" in printed
    call(left_after(5, lambda: None), "--resume", run)
    assert (saved(tmp_path)["step"], points_of(run)["loss"]) == (5, [(1, 1), (2, 2), (4, 3.5)])


def test_an_average_that_tools_take_for_that_of_another_network_is_noted(tmp_path, capsys):
    def notes(**state):
        list(steps_of(tmp_path, state=state))
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and "ave" in line]

    g, d = torch.nn.Linear(2, 2), torch.nn.Linear(3, 3)
    assert notes(generator=g, average=AveragedModel(g), d=d, average_d=AveragedModel(d)) == []
    advice = "an average of another network x is called average_x"
    assert notes(G=g, ema=AveragedModel(g)) == [
        f"note: ema counts as the average of generator, which `state` lacks: {advice}"
    ]
    assert notes(generator=g, d=d, ema_g=AveragedModel(g), ema_d=AveragedModel(d)) == [
        f"note: ema_g and ema_d are averages of generator: the tools take ema_d; {advice}"
    ]


def test_a_loop_that_draws_its_data_may_have_chosen_options(tmp_path):
    with open_run(tmp_path) as run:
        run.options = replace(run.options, log_every=1)
        for (step,) in run.steps(state={}, pictures={}):
            run.log(step, {"x": 1.0})
    assert load(run.folder)["options"]["log_every"] == 1


def test_a_run_to_begin_with_is_named_from_the_folder_in_which_the_script_was_started(tmp_path, monkeypatch):
    call(left_after(3, lambda: None), *ARGUMENTS.split(), tmp_path / "first")
    (run,) = (tmp_path / "first").glob("script/*")
    monkeypatch.chdir(run.parent)
    script = left_after(2, lambda: None)

    def main(options: RunOptions, run: Run, main=script.main):
        os.chdir("/")
        main(options, run)

    script.main = main
    monkeypatch.setenv("HOME", str(tmp_path))
    call(script, *ARGUMENTS.split()[:-1], "--runs-dir=~/second", "--init-from", run.name)
    assert saved(tmp_path / "second")["options"]["init_from"] == str(run)


LEFT = [("start", "break", 3), ("start", "error", 3), ("changed", "break", 2), ("changed", "error", 2)]
LEFT += [("read", "break", 2), ("read", "error", 2), ("log", "error", 2)]
LEFT += [("logged", "break", 4), ("logged", "exit", 4), ("logged", "error", 2)]


@pytest.mark.parametrize(("place", "how", "expected"), LEFT)
def test_a_checkpoint_is_of_a_step_whose_loop_body_ended_wherever_the_loop_is_left(
    place, how, expected, tmp_path, capsys
):
    """Step 2 has a checkpoint, step 3 has ended, step 4 is left; the weight is the number of steps."""

    def leave(step, here):
        if (step, here, how) == (4, place, "error"):
            raise ZeroDivisionError
        if (step, here, how) == (4, place, "exit"):
            sys.exit()
        return (step, here, how) == (4, place, "break")

    weights = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(weights.weight)
    optimizer = torch.optim.SGD(weights.parameters(), lr=1.0)
    statistics = torch.nn.BatchNorm1d(1)
    state = {"weights": weights, "optimizer": optimizer, "statistics": statistics}
    expectation = nullcontext() if how == "break" else pytest.raises((ZeroDivisionError, RuntimeError, SystemExit))
    with expectation, open_run(tmp_path, steps=9, checkpoint_every=2) as run:
        for step, _ in run.steps(IMAGES, state=state, pictures={}):
            if leave(step, "start"):
                break
            statistics(weights(torch.ones(2, 1)))  # the body has changed buffers
            if leave(step, "read"):
                break
            weights.weight.grad = -torch.ones(1, 1)
            optimizer.step()
            if leave(step, "changed"):
                break
            run.log(step, {"loss": torch.ones(2) if (step, place) == (4, "log") else 1.0})
            if leave(step, "logged"):
                break
    (folder,) = tmp_path.glob("script/*")
    assert (load(folder)["step"], load(folder)["weights"]["weight"].item()) == (expected, expected)
    printed = capsys.readouterr().out
    assert printed.startswith(f"Interrupted after step {expected}.\nContinue: ")
    FileLock(folder / ".lock", blocking=False).acquire()


def test_a_schedule_of_schedules_may_be_in_the_state(tmp_path):
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    chained = torch.optim.lr_scheduler.ChainedScheduler([torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)])
    for _ in steps_of(tmp_path, IMAGES, state={"network": network, "optimizer": optimizer, "chained": chained}):
        optimizer.step()
        chained.step()
    assert saved(tmp_path)["chained"]["_schedulers"][0]["last_epoch"] == 3


def test_a_step_after_which_a_picture_cannot_be_drawn_is_saved(tmp_path, capsys):
    draw = mock.Mock(side_effect=[torch.zeros(1, 1, 8, 8), ZeroDivisionError, ZeroDivisionError])
    with pytest.raises(ZeroDivisionError), open_run(tmp_path, steps=9, sample_every=3) as run:
        for step, _ in run.steps(IMAGES, state={}, pictures={"drawn": draw}):
            run.log(step, {})
    assert saved(tmp_path)["step"] == 3
    assert capsys.readouterr().out.startswith("Interrupted after step 3.\nContinue: ")


def test_an_error_of_a_script_s_own_lines_keeps_its_traceback_also_one_of_files(tmp_path):
    for error in (FileNotFoundError, ConnectionResetError, UnicodeError):
        with pytest.raises(error):
            call(left_after(3, mock.Mock(side_effect=error)), *ARGUMENTS.split(), tmp_path)


def test_a_part_that_was_added_to_the_state_in_the_loop_is_asked_for_as_a_run_is_resumed(tmp_path):
    network, state = torch.nn.Linear(1, 1), {}
    state["optimizer"] = torch.optim.SGD(network.parameters(), lr=0.1)
    with open_run(tmp_path) as run:
        for _ in run.steps(IMAGES, state=state, pictures={}):
            state["schedule"] = torch.optim.lr_scheduler.ExponentialLR(state["optimizer"], 0.9)
    del state["schedule"]
    with pytest.raises(BadInput, match="its checkpoint also has schedule, which `state` lacks"):
        list(steps_of(tmp_path, IMAGES, state=state, resume=run.folder, steps=5))


def test_two_runs_in_one_process_may_take_turns(tmp_path):
    parts = [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)]
    optimizers = [torch.optim.SGD(part.parameters()) for part in parts]
    states = [{"part": part, "optimizer": own} for part, own in zip(parts, optimizers, strict=True)]
    with open_run(tmp_path) as one, open_run(tmp_path) as other:
        loops = [run.steps(state=state, pictures={}) for run, state in zip((one, other), states, strict=True)]
        for _ in zip(*loops, strict=True):
            for optimizer in optimizers:
                optimizer.step()
    assert [load(run.folder)["step"] for run in (one, other)] == [3, 3]


def test_a_loop_left_in_its_first_step_says_that_there_is_no_checkpoint(tmp_path, capsys):
    with open_run(tmp_path) as run:
        for _ in run.steps(state={}, pictures={}):
            break
    assert capsys.readouterr().out.startswith("Interrupted before the first checkpoint.\nTensorBoard: ")


def test_an_error_of_the_loop_is_shown_also_where_the_weights_are_not_finite(tmp_path, capsys):
    weights = torch.nn.Linear(1, 1)
    with pytest.raises(ZeroDivisionError), open_run(tmp_path) as run:
        for step, *_ in run.steps(state={"weights": weights}, pictures={}):
            if step == 2:
                raise ZeroDivisionError
            torch.nn.init.constant_(weights.weight, float("nan"))
    assert capsys.readouterr().out.startswith("Interrupted before the first checkpoint.\nTensorBoard: ")


@pytest.mark.parametrize("ahead", [0, 3600])
def test_a_resumed_run_has_the_last_file_of_its_events_also_after_the_clock_was_set_back(ahead, tmp_path):
    run = logged(tmp_path, lambda step: {"a": step}, IMAGES, steps=2, log_every=1)
    (events,) = run.glob("events*")
    events.rename(events.with_name(f"events.out.tfevents.{int(time.time()) + ahead}.zzz"))  # of any other process
    torch.save(load(run) | {"step": 1}, run / "checkpoint.pt")  # as if it had been killed in its second step
    logged(tmp_path, lambda step: {"a": 10 * step}, IMAGES, steps=3, log_every=1, resume=run)
    assert points_of(run)["a"] == [(1, 1), (2, 20), (3, 30)]


def test_a_tensorboard_that_is_open_shows_the_curves_of_a_run_that_is_resumed(tmp_path):
    run = logged(tmp_path, lambda step: {"a": step}, IMAGES, steps=2, log_every=1)
    (events,) = run.glob("events*")
    events.rename(events.with_name(f"events.out.tfevents.{int(time.time()) - 1}.zzz"))  # a second earlier
    events = EventAccumulator(str(run)).Reload()
    logged(tmp_path, lambda step: {"a": step}, IMAGES, steps=4, log_every=1, resume=run)
    assert [event.step for event in events.Reload().Scalars("a")] == [1, 2, 3, 4]


def delete_in_step_2(pattern, folder):
    """Train four steps, with a checkpoint after every other one; delete a file of the run in the second."""
    with open_run(folder, steps=4, log_every=1, checkpoint_every=2) as run:
        for (step,) in run.steps(state={}, pictures={}):
            run.log(step, {"a": step})
            if step == 2:
                run.board.writer.flush()
                next(run.folder.glob(pattern)).unlink()


def test_curves_after_their_file_was_deleted_are_in_a_new_one(tmp_path):
    delete_in_step_2("events*", tmp_path)
    (run,) = tmp_path.glob("script/*")
    assert points_of(run)["a"][-2:] == [(3, 3), (4, 4)]


def test_a_run_whose_lock_is_deleted_stops_before_it_writes_a_checkpoint(tmp_path):
    with pytest.raises(Stopped, match=r"\.lock: was deleted, so another process may train this run: nothing is writ"):
        delete_in_step_2(".lock", tmp_path)
    assert not list(tmp_path.glob("script/*/checkpoint.pt"))


def test_pictures_may_have_other_sizes_and_channels_and_there_may_be_none(tmp_path, capsys):
    sizes = {"small": lambda: torch.ones(2, 1, 8, 8), "big": lambda: torch.ones(2, 3, 16, 16)}
    list(steps_of(tmp_path, steps=1, pictures=sizes))
    (picture,) = tmp_path.glob("script/*/samples/step-000001.png")
    assert Image.open(picture).size == (2 * 34 + 2, 20 + 36)  # of each: twice the size, and a frame
    assert "Samples:" in capsys.readouterr().out
    list(steps_of(tmp_path, steps=1))
    assert "Samples:" not in capsys.readouterr().out


@pytest.mark.parametrize("picture", [IMAGES, torch.ones(2, 2, 8, 8), torch.ones(2, 8, 8), None, [1.0]])
def test_a_picture_of_another_kind_is_refused_by_its_name(picture, tmp_path):
    with pytest.raises(BadInput, match=r"pictures\['a'\] must be floats \(N, 1 or 3, H, W\) in \[-1, 1\], not"):
        list(steps_of(tmp_path, steps=1, pictures={"a": lambda: picture}))


NO_DATA = [[IMAGES], range(3), IMAGES.double(), IMAGES[0], IMAGES[:0], torch.tensor(1.0), IMAGES.numpy()]
NO_DATA = [*zip(NO_DATA, ["list", "range", *["Tensor torch"] * 4, "ndarray uint8"], strict=True)]
NO_DATA += [(torch.tensor([[0.0], [number]]), None) for number in (float("nan"), -float("inf"))]


@pytest.mark.parametrize(("data", "kind"), NO_DATA)
def test_data_of_another_kind_and_numbers_that_are_not_finite_are_refused_before_a_folder_is_made(data, kind, tmp_path):
    asked = r"must be a tensor \(torch.from_numpy\), uint8 \(N, C, H, W\) or float32 \(N, \.\.\.\), not"
    fault = f"{asked} {kind}" if kind else "hold NaN or infinity"
    with pytest.raises(BadInput, match=f"data {fault}"):
        next(steps_of(tmp_path, IMAGES, data))
    assert not list(tmp_path.iterdir())


def test_a_run_is_read_once_as_it_is_resumed_and_left_alone_by_all_others_while_it_trains(copied, monkeypatch, refusal):
    reads = []
    monkeypatch.setattr(zipfile.ZipFile, "testzip", lambda archive: reads.append(archive.filename))

    def resume_again(run, step, results):
        run.board.writer.flush()  # a thread writes
        before = contents(copied)
        line = f"error: {copied}: another process is training this run; wait for it, or end it first"
        assert refusal("gan_detach", "--resume", copied, "--steps", 9).startswith(line)
        assert contents(copied) == before
        log(run, step, results)

    log = Run.log
    monkeypatch.setattr(Run, "log", resume_again)
    call("gan_detach", "--resume", copied, "--steps", 4)
    assert (reads, load(copied)["step"]) == ([f"{copied}/checkpoint.pt"], 4)


# What stops a run: a loss that is not finite, a full disk, Ctrl-C as it starts; and no closed output does.


def stop_in_the_middle(arguments, tmp_path, outcome):
    """Train with checkpoints every 4 steps to 1; return the line that it ends with and the run's folder."""
    arguments = [*SMALL, *arguments.split(), "--checkpoint-every", 4, "--runs-dir", tmp_path]
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


def test_a_weight_that_is_not_finite_stops_the_run_at_its_next_checkpoint(tmp_path, monkeypatch, outcome):
    train_step, steps = gan_detach.train_step, itertools.count(1)

    def broken(generator, *given):
        if next(steps) == 6:
            next(generator.parameters()).data.view(-1)[0] = float("inf")
        return train_step(generator, *given)

    monkeypatch.setattr(gan_detach, "train_step", broken)
    line, _ = stop_in_the_middle("--steps 20", tmp_path, outcome)
    weight = "generator['0.weight'] is not finite"
    assert line == f"error: step 8: {weight}: no checkpoint is written; try a lower --lr"


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def no_room_for_a_curve(run):
    run.board.writer.flush()
    (events,) = run.folder.glob("events*")
    limit(events.stat().st_size + 10)


NO_ROOM = [
    (lambda _: limit(1_000_000), "--steps 20", "{run}/checkpoint.pt"),
    (no_room_for_a_curve, "--steps 7 --log-every 1 --sample-every 1000", "{run}"),
]


@pytest.mark.parametrize(("event", "arguments", "named"), NO_ROOM)
def test_a_full_disk_is_told_in_one_line_and_the_last_checkpoint_stays(
    event, arguments, named, tmp_path, monkeypatch, outcome
):
    def save_once(self):
        save(self)
        if self.step == 4:
            event(self)

    save, hook = Run._save, mock.Mock()
    monkeypatch.setattr(threading, "excepthook", hook)
    monkeypatch.setattr(Run, "_save", save_once)
    line, run = stop_in_the_middle(arguments, tmp_path, outcome)
    assert line == f"error: {named.format(run=run)}: cannot be written: {os.strerror(errno.EFBIG)}"
    assert threading.excepthook is hook
    assert not hook.called  # which would print the traceback of TensorBoard's thread


def test_ctrl_c_while_the_data_are_loaded_ends_the_process_without_a_word(tmp_path, monkeypatch, outcome):
    monkeypatch.setattr(gan_detach, "load_images", mock.Mock(side_effect=KeyboardInterrupt))
    assert outcome("gan_detach", *SMALL, "--runs-dir", tmp_path / "runs") == (130, "", "")
    assert not (tmp_path / "runs").exists()


def test_floats_are_yielded_as_they_are(tmp_path):
    table = torch.randn(10, 3)
    rows = torch.cat([batch for _, batch in steps_of(tmp_path, table, batch_size=5, steps=2)])
    assert rows[rows[:, 0].argsort()].equal(table[table[:, 0].argsort()])
    assert saved(tmp_path)["data_types"] == ["float32"]


def test_a_curve_may_overflow_where_a_grad_scaler_is_in_use(tmp_path):
    with open_run(tmp_path, log_every=1) as run:
        for (step,) in run.steps(state={"scaler": torch.amp.GradScaler("cpu")}, pictures={}):
            run.log(step, {"norm": float("inf")})
    assert load(run.folder)["step"] == 3


def test_the_bar_is_a_few_lines_where_there_is_no_terminal(tmp_path, capsys):
    for (step,) in steps_of(tmp_path, steps=2000):
        assert step
    assert capsys.readouterr().err.count("script:") == 2  # another one every ten seconds


def test_the_commit_says_that_a_file_has_been_changed_since(tmp_path, monkeypatch):
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "script.py").touch()
    for command in (["init", "-q"], ["add", "script.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    clean = describe_origin(tmp_path / "script.py", "cpu")["commit"]
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))  # as in a hook of another repository
    assert describe_origin(tmp_path / "script.py", "cpu")["commit"] == clean
    (tmp_path / "copy.py").touch()  # is in no commit
    assert describe_origin(tmp_path / "copy.py", "cpu")["commit"] == f"{clean}-dirty"
    session = describe_origin(tmp_path / "gan_mine", "cpu")  # beside a script, but no file
    assert (session["command"], session["commit"]) == ("a session", "none")
    (tmp_path / "script.py").write_text("pass")
    assert describe_origin(tmp_path / "script.py", "cpu")["commit"] == f"{clean}-dirty"


def test_the_command_says_how_many_processes_a_machine_has_started(tmp_path, monkeypatch):
    (tmp_path / "script.py").touch()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert describe_origin(tmp_path / "script.py", "cpu")["command"].startswith("torchrun --nproc-per-node=2 ")


def test_a_run_of_several_machines_says_so_and_is_not_continued_on_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "script.py").touch()
    for name, value in {"LOCAL_WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    command = describe_origin(tmp_path / "script.py", "cpu")["command"]
    assert command.startswith("torchrun --nnodes=2 --nproc-per-node=8 ")
    show_end(tmp_path / "script.py", tmp_path / "run", 5, 10, 16)
    assert "Continue:    on each machine, torchrun with its options, then " in capsys.readouterr().out
    show_end(Path("no_script.py"), tmp_path / "run", 5, 10, 1)  # of a session
    assert "Continue" not in capsys.readouterr().out


def test_the_command_that_makes_more_images_works_in_the_current_folder(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    for folder, tools in (
        (ROOT, "scripts/tools"),
        (tmp_path, f"{ROOT}/scripts/tools"),
        (gone, f"{ROOT}/scripts/tools"),
    ):
        monkeypatch.chdir(folder)
        if folder == gone:
            gone.rmdir()
        show_end(tmp_path / "script.py", tmp_path / "run", 10, 10, 1)
        assert f"More images: python {tools}/sample.py {tmp_path / 'run'} " in capsys.readouterr().out
