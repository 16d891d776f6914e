"""What a script's loop shows, and what the run does between two of its iterations."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest
import torch
from helpers import TRAINING, module_of

from common.errors import BadInput
from common.run.options import GanOptions
from common.run.signals import Interrupted
from common.training_run import TrainingRun

TINY = {"batch_size": 2, "device": "cpu", "image_size": 8, "log_every": 1, "sample_every": 1, "checkpoint_every": 1}
IMAGES = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)


@pytest.mark.parametrize("script", TRAINING)
def test_the_step_alone_computes_in_the_precision_asked_for(script, tmp_path, monkeypatch):
    """Pictures and whatever else a main does between two steps are in float32."""
    module = module_of(script)
    train_step, log, seen = module.train_step, TrainingRun.log, []

    def precision_here():
        enabled = torch.is_autocast_enabled("cpu")
        return enabled and torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()

    def watched_step(*arguments):
        seen.append(("step", *precision_here()))
        return train_step(*arguments)

    def watched_log(*arguments):
        seen.append(("log", *precision_here()))
        log(*arguments)

    before = precision_here()
    monkeypatch.setattr(module, "train_step", watched_step)
    monkeypatch.setattr(TrainingRun, "log", watched_log)
    small = {"width": 2, "blocks": 1, "halvings": 1} if script == "cyclegan" else {"model": "mlp"}
    options = module.main.__annotations__["options"]
    module.main(options(**TINY, **small, steps=2, precision="bf16", runs_dir=tmp_path))
    assert seen == [("step", torch.bfloat16, False), ("log", False, True)] * 2
    assert precision_here() == before


def test_pictures_are_made_in_eval_mode_and_each_module_gets_its_own_mode_back(tmp_path):
    frozen, trained = torch.nn.BatchNorm2d(1).eval(), torch.nn.Dropout()
    network = torch.nn.Sequential(frozen, trained)
    modes = []

    def picture():
        modes.append([module.training for module in network.modules()])
        return torch.zeros(1, 1, 8, 8)

    run = TrainingRun("script.py", GanOptions(**TINY, steps=2, runs_dir=tmp_path))
    run.show(picture=picture)
    run.keep(network=network)
    for step, _ in run.steps(IMAGES):
        assert (network.training, frozen.training, trained.training) == (True, False, True)
        run.log(step, {})
    assert modes == [[False] * 3] * 3


def run_of(folder, steps=3):
    """A run, given in Python as a reader would: the folder as a str."""
    run = TrainingRun("script.py", GanOptions(batch_size=4, steps=steps, device="cpu", runs_dir=str(folder)))
    run.show(nothing=lambda: torch.zeros(1, 1, 8, 8))
    return run


def test_runs_leave_the_signal_handlers_as_they_were(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]  # ignored in some shells
    list(run_of(tmp_path).steps(IMAGES))
    steps = run_of(tmp_path).steps(IMAGES)
    next(steps)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Interrupted):
        next(steps)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_trains_in_a_thread(tmp_path):
    steps = []
    thread = threading.Thread(target=lambda: steps.extend(step for step, _ in run_of(tmp_path).steps(IMAGES)))
    thread.start()
    thread.join()
    assert steps == [1, 2, 3]


def test_an_optimizer_of_a_frozen_network_is_refused_by_name(tmp_path):
    run, network = run_of(tmp_path), torch.nn.Linear(2, 3).requires_grad_(False)
    run.keep(generator=network, optimizer_g=torch.optim.SGD(network.parameters()))
    with pytest.raises(BadInput, match="optimizer_g: all of its parameters are frozen"):
        next(run.steps(IMAGES))


def test_the_command_that_is_printed_for_more_images_holds_in_the_current_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    list(run_of(tmp_path).steps(IMAGES))
    script, run = re.search(r"^More images: python (\S+) (\S+)$", capsys.readouterr().out, re.MULTILINE).groups()
    assert Path(script).is_file()
    assert Path(run, "checkpoint.pt").is_file()
