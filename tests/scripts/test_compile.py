"""Every script with `--compile`: what AOTAutograd makes of its networks; `pytest -m compile` takes inductor, too."""

import copy
from functools import partial

import pytest
import torch
from helpers import GANS, call, module_of, path_of, saved
from processes import python
from torch._dynamo.testing import CompileCounterWithBackend

from common.models import conv, mlp
from common.options import RunOptions
from common.run import Run

MLP = "--model mlp --image-size 8 --batch-size 4"
DCGAN = "--model conv --batch-size 2"
CYCLEGAN = "--image-size 12 --width 4 --blocks 1 --batch-size 2"
QUICK = [*((script, MLP) for script in [*GANS, "gan_conditional"]), ("cyclegan", CYCLEGAN)]
QUICK += [("gan_r3", f"{MLP} --penalty approximate")]
RUNS = [*QUICK, *((script, DCGAN) for script in GANS)]


@pytest.mark.parametrize(("script", "arguments"), QUICK)
def test_a_script_trains_compiled(script, arguments, tmp_path, monkeypatch):
    # AOTAutograd is where a backward pass is compiled, and refuses or not; its code is then run as it is.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    call(script, *arguments.split(), "--compile", "--steps", 2, "--device", "cpu", "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 2


@pytest.mark.parametrize("make", [mlp, conv])
def test_the_whole_of_a_network_is_compiled_and_its_copies_and_hooks_are_as_they_were(make, monkeypatch):
    """In torch 2.6, `network.compile()` compiles nothing of these networks."""
    seen = []
    backend = CompileCounterWithBackend("eager")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    _, discriminator = make((1, 28, 28), 4)
    images = torch.rand(2, 1, 28, 28)
    names, logits = [*discriminator.state_dict()], discriminator(images)
    discriminator.register_forward_hook(lambda *_: seen.append(1))
    run = Run("script.py", RunOptions(compile=True, device="cpu"))
    run.place(discriminator)
    torch.testing.assert_close(discriminator(images), logits)
    assert (backend.frame_count, len(seen)) == (1, 1)
    copied = copy.deepcopy(discriminator)
    copied(images + 1)
    assert (backend.frame_count, [*discriminator.state_dict()]) == (1, names)


@pytest.mark.parametrize("script", ["gan_retain_graph", "gan_simultaneous"])
def test_without_the_setting_two_of_them_fail_so_the_test_above_can(script):
    step = module_of(script).train_step
    pair = [torch.compile(network, backend="aot_eager") for network in mlp((1, 8, 8), 4)]
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in pair]
    with pytest.raises(RuntimeError, match="donated buffers"):
        step(*pair, *optimizers, torch.zeros(2, 1, 8, 8), torch.zeros(2, 4))


@pytest.mark.compile
@pytest.mark.parametrize(("script", "arguments"), RUNS)
def test_a_script_trains_compiled_by_inductor_as_a_process_of_its_own(script, arguments, tmp_path):
    arguments = [*arguments.split(), "--compile", "--steps", 3, "--runs-dir", tmp_path]
    done = python(path_of(script), *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert saved(tmp_path)["step"] == 3
