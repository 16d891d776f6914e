"""What docs/copy.md says to write into a copied script is run as it is written there."""

import math
import re
import textwrap
from types import ModuleType

import pytest
import torch
from helpers import ROOT, call, path_of, saved
from processes import ended, logs, start_ranks

from common import losses
from common.models import conv, mlp
from scripts import gan_detach

SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "copy.md").read_text(), re.M | re.S)
HINGE, ACCUMULATION, COSINE, SCHEDULE, CLIPPING, TWICE, LOADING = SNIPPETS


def make_all():
    torch.manual_seed(0)
    networks = [network.double() for network in mlp((1, 28, 28), 5)]
    return [*networks, *(torch.optim.SGD(network.parameters(), lr=0.05) for network in networks)]


def batch(step):
    torch.manual_seed(step)
    return torch.rand(8, 1, 28, 28).double() * 2 - 1, torch.randn(8, 5).double()


def assert_same_weights(parts, others):
    states = ([dict(network.named_parameters()) for network in of[:2]] for of in (parts, others))
    torch.testing.assert_close(*states, rtol=1e-11, atol=1e-13)  # sums of 8 in another order


@pytest.mark.numerics
def test_accumulated_gradients_are_those_of_the_whole_batch():
    parts, others = make_all(), make_all()
    names = "generator", "discriminator", "optimizer_g", "optimizer_d"
    given = dict(zip(names, parts, strict=True)) | vars(losses)
    for step in range(3):
        real, z = batch(step)
        exec(ACCUMULATION, given | {"real": real, "z": z})
        gan_detach.train_step(*others, real, z)
    assert_same_weights(parts, others)


def hinge(order):
    """Return the step of an update order, with the losses of the docs in place of those that it imports."""
    names = {"__file__": str(path_of(f"gan_{order}")), "__name__": order}
    exec(path_of(f"gan_{order}").read_text(), names)
    exec(HINGE, names)
    return names["train_step"]


@pytest.mark.numerics
def test_the_hinge_loss_by_hand_and_in_a_step():
    discriminator, generator = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(discriminator.weight, 2.0)
    torch.nn.init.constant_(generator.weight, 1.0)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in (generator, discriminator)]
    real, z = torch.tensor([[0.25], [3.0]]), torch.tensor([[1.0], [-1.0]])
    # D: logits 0.5 and 6 of real, 2 and -2 of fake: half of the means of 0.5 and 0, and of 3 and 0. Its gradient
    # is (-0.25 / 2 + 1 / 2) / 2 = 0.1875. G: minus the mean of -z's and z's logits, 0, and so is its gradient.
    results = hinge("detach")(generator, discriminator, *optimizers, real, z)
    assert results["d_loss"].item() == (0.25 + 1.5) / 2
    assert discriminator.weight.item() == 2 - 0.1875
    assert results["g_loss"].item() == 0
    assert generator.weight.item() == 1


@pytest.mark.numerics
def test_one_stage_takes_the_hinge_loss_also_beyond_the_margin():
    """There no derivative of D's loss is left at a fake, and G's must still arrive."""
    parts, others = make_all(), make_all()
    for generator, discriminator, *optimizers in (parts, others):
        with torch.no_grad():
            discriminator[-1].bias.fill_(-5)
            assert (discriminator(generator(batch(0)[1])) < -1).all()
        step = hinge("one_stage" if generator is parts[0] else "simultaneous")
        before = next(generator.parameters()).clone()
        for number in range(3):
            step(generator, discriminator, *optimizers, *batch(number))
        assert (next(generator.parameters()) != before).any()
    assert_same_weights(parts, others)


RATES = """        for optimizer, lr in ((optimizer_g, options.lr), (optimizer_d, lr_d)):
            optimizer.param_groups[0]["lr"] = lr * rate(step - 1)
"""


def edited(folder, *edits):
    """Return gan_detach.py with parts of it replaced, as a module that lies in `folder`."""
    text = path_of("gan_detach").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    script = ModuleType("gan_mine")
    script.__file__ = str(folder / "gan_mine.py")
    exec(text, script.__dict__)
    return script


TINY = ["--model", "mlp", "--image-size", 8, "--batch-size", 4, "--device", "cpu"]


def rate_of(runs):
    return saved(runs)["optimizer_g"]["param_groups"][0]["lr"]


def test_a_rate_that_is_a_function_of_the_step_is_right_after_a_resume_with_more_steps(tmp_path):
    linear = "    rate = linear_decay(options.steps, options.steps // 2)\n"
    script = edited(tmp_path, (linear, f"    {COSINE}"), ("import sys\n", "import math\nimport sys\n"))
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path)
    call(script, "--resume", next(tmp_path.glob("gan_mine/*")), "--steps", 4)
    assert rate_of(tmp_path) == pytest.approx(3e-3 * (1 + math.cos(math.pi * 3 / 4)) / 2, rel=1e-12)


def test_a_kept_scheduler_with_the_length_of_a_shorter_run_is_told(tmp_path, capsys):
    cosine = "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer_g, options.steps)"
    script = edited(tmp_path, ("    for step, real in", f'    state["kept"] = {cosine}\n    for step, real in'))
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path)
    assert "its length" not in capsys.readouterr().out
    call(script, "--resume", next(tmp_path.glob("gan_mine/*")), "--steps", 4)
    assert "kept: its length is still 2; make the rate a function of the step" in capsys.readouterr().out


def clipped(folder):
    """Train a copy with the clipping of the docs; leave the norm of the gradient that the last step of D used."""
    hook = "        optimizer.register_step_pre_hook(run.ranks.average_gradients)\n"
    script = edited(folder, (hook, hook + textwrap.indent(CLIPPING, "    ")))
    norms, fused_adam = [], script.fused_adam

    def spied(parameters, *given):
        parameters = list(parameters)
        optimizer = fused_adam(parameters, *given)
        optimizer.register_step_post_hook(lambda *_: norms.append(torch.cat([p.grad.flatten() for p in parameters])))
        return optimizer

    script.fused_adam = spied
    call(script, *TINY, "--steps", 1, "--runs-dir", folder)
    print("norm", norms[0].norm().item())


@pytest.mark.parametrize("count", [1, 2])
def test_the_gradient_of_the_global_batch_is_clipped_in_one_process_and_in_two(count, tmp_path):
    processes = start_ranks(count, tmp_path, clipped, tmp_path)
    assert ended(processes) == [0] * count, logs(tmp_path, count)
    for log in logs(tmp_path, count):
        (norm,) = re.findall(r"^norm (.*)$", log, re.M)
        assert float(norm) == pytest.approx(0.1, rel=1e-4)  # clip_grad_norm_ adds 1e-6 to the norm


def test_a_data_set_that_is_named_twice_gives_two_batches(tmp_path):
    loop = "    for step, real in run.steps(images, state=state, pictures=pictures):\n"
    both = f"    {TWICE}        assert first.shape == second.shape and not first.equal(second)\n        real = first\n"
    call(edited(tmp_path, (loop, both)), *TINY, "--steps", 1, "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 1


def test_another_program_loads_and_exports_the_average(tmp_path, monkeypatch):
    call("gan_detach", "--steps", 1, "--batch-size", 4, "--device", "cpu", "--runs-dir", tmp_path)
    monkeypatch.chdir(next(tmp_path.glob("gan_detach/*")))
    names = {"torch": torch, "conv": conv}
    exec(LOADING, names)
    z = torch.randn(1, 64)
    torch.testing.assert_close(names["program"].module()(z), names["generator"](z))


def test_a_schedule_goes_on_where_a_resumed_run_has_stopped(tmp_path):
    make, keep, step = SCHEDULE.splitlines()
    script = edited(
        tmp_path,
        (RATES, ""),
        ("    average = AveragedModel", f"    {make}\n    average = AveragedModel"),
        ("    for step, real in", f"    {keep}\n    for step, real in"),
        ("        run.log(step, results)\n", f"        {step}\n        run.log(step, results)\n"),
    )
    for runs, steps in (("whole", 4), ("parts", 2)):
        call(script, *TINY, "--steps", steps, "--runs-dir", tmp_path / runs)
    call(script, "--resume", next((tmp_path / "parts").glob("*/*")), "--steps", 4)
    whole, parts = (saved(tmp_path / runs) for runs in ("whole", "parts"))
    for name in ("schedule_g", "optimizer_g", "generator"):
        torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=0)
    assert rate_of(tmp_path / "whole") == pytest.approx(3e-3 * 0.999**4, rel=1e-12)
