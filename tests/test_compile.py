"""Every script with `--compile`: what AOTAutograd makes of its networks in the suite, and the whole of inductor by

pytest -m compile

which takes some minutes.
"""

from functools import partialmethod

import pytest
import torch
from helpers import GANS, call, module_of, path_of
from processes import python
from torch import nn

from common.models import mlp

MLP = "--model mlp --image-size 8 --batch-size 4"
DCGAN = "--model dcgan --batch-size 2"
CYCLEGAN = "--image-size 12 --width 4 --blocks 1 --batch-size 2"
QUICK = [*((script, MLP) for script in GANS), ("cyclegan", CYCLEGAN)]
RUNS = [*QUICK, *((script, DCGAN) for script in GANS)]


@pytest.fixture
def as_new():
    """Leave no compiled code behind."""
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(("script", "arguments"), QUICK)
def test_a_script_trains_compiled(script, arguments, tmp_path, monkeypatch, as_new):
    # AOTAutograd is where a backward pass is compiled, and refuses or not; its code is then run as it is.
    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="aot_eager"))
    call(script, *arguments.split(), "--compile", "--steps", 2, "--device", "cpu", "--runs-dir", tmp_path)
    (checkpoint,) = tmp_path.glob("*/*/checkpoint.pt")
    assert torch.load(checkpoint, weights_only=True)["step"] == 2


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch 2.6 raises nothing here")
@pytest.mark.parametrize("script", ["gan_retain_graph", "gan_simultaneous"])
def test_without_the_setting_two_of_them_fail_so_the_test_above_can(script, as_new):
    step = module_of(script).train_step
    pair = mlp((1, 8, 8), 4)
    for network in pair:
        network.compile(backend="aot_eager")
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in pair]
    with pytest.raises(RuntimeError, match="donated buffers"):
        step(*pair, *optimizers, torch.zeros(2, 1, 8, 8), torch.zeros(2, 4))


@pytest.mark.compile
@pytest.mark.parametrize(("script", "arguments"), RUNS)
def test_a_script_trains_compiled_by_inductor_as_a_process_of_its_own(script, arguments, tmp_path):
    arguments = [*arguments.split(), "--compile", "--steps", 3, "--runs-dir", tmp_path]
    done = python(path_of(script), *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (checkpoint,) = tmp_path.glob("*/*/checkpoint.pt")
    assert torch.load(checkpoint, weights_only=True)["step"] == 3
