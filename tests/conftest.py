"""Settings, a finished run, and the command line of a script in this process, for all tests."""

import gc
import os
import re
import shutil
import signal

if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):  # they, and the processes that they start, share the cores
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers))))

import pytest
import torch
import torch.distributed as dist
from helpers import call, train
from hypothesis import HealthCheck, settings
from torch import nn
from torch._functorch import config as functorch_config
from torch.optim.swa_utils import AveragedModel

from common.models import mlp
from common.options import GanOptions
from scripts import cyclegan, gan_detach
from scripts.tools import evaluate
from scripts.tools.classifier import Classifier

# The first call into torch takes as long as it likes, and everything does on a starved machine.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores for what it starts in the background


@pytest.fixture(autouse=True)
def compilation():
    """Leave no compiled code, and the setting of compiled backward passes as it was."""
    before = functorch_config.donated_buffer
    yield
    functorch_config.donated_buffer = before
    torch.compiler.reset()


@pytest.fixture(scope="module")
def few_objects():
    """Hide the objects that exist already from `gc.get_objects()`.

    Every audit searches them for optimizers, and the modules of torch hold some 300,000.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run of three steps, which no test may change."""
    runs = tmp_path_factory.mktemp("finished")
    train(gan_detach, GanOptions(model="mlp", image_size=8, batch_size=4, steps=3, device="cpu", runs_dir=runs))
    (run,) = runs.glob("gan_detach/*")
    return run


@pytest.fixture(scope="session")
def finished_cyclegan(tmp_path_factory):
    """The folder of a run of CycleGAN of one step, which no test may change."""
    runs = tmp_path_factory.mktemp("finished")
    train(cyclegan, cyclegan.CycleGANOptions(width=2, blocks=1, halvings=1, steps=1, device="cpu", runs_dir=runs))
    (run,) = runs.glob("cyclegan/*")
    return run


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished run, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def run(tmp_path):
    """The folder of a run whose generator was never trained, with an average that is another."""
    torch.manual_seed(0)
    checkpoint = {
        "script": "gan_detach",
        "step": 7,
        "options": {"dataset": "mnist5k", "image_size": None, "model": "mlp", "z_dim": 8},
        "data_shapes": [(4000, 1, 28, 28)],
        "generator": mlp((1, 28, 28), 8)[0].state_dict(),
        "averages": {"generator": "average"},
        "average": AveragedModel(mlp((1, 28, 28), 8)[0]).state_dict(),
    }
    (tmp_path / "run").mkdir()
    torch.save(checkpoint, tmp_path / "run" / "checkpoint.pt")
    return tmp_path / "run"


@pytest.fixture
def one_process_group():
    """A group of one process, as DistributedDataParallel wants one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def untrained(monkeypatch):
    """A classifier of digits that takes no time to train, for few samples."""
    monkeypatch.setattr(evaluate, "COUNT", 100)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()
    judge = Classifier(network, (1, 28), tuple("0123456789"), 0.1, 1000)
    monkeypatch.setattr(evaluate, "digit_classifier", lambda: judge)


@pytest.fixture
def outcome(capsys):
    """Return a function that does what a script's command line does, and returns its exit status and both outputs."""

    def outcome(script, *arguments):
        capsys.readouterr()
        status = 0
        try:
            call(script, *arguments)
        except SystemExit as end:
            status = end.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return outcome


@pytest.fixture
def refusal(outcome):
    """Return a function that returns the line with which a script refuses its command line, or tyro's box as a line."""

    def refusal(script, *arguments):
        status, out, err = outcome(script, *arguments)
        assert (status, re.sub("Trains on .*\n", "", out)) == (2, ""), err
        lines = err.splitlines()
        assert len(lines) == 1 or not err.startswith("error: "), err
        return " ".join(line.strip("│╭╮╰╯─ ") for line in lines)

    return refusal
