"""What README says that a copied step needs is enough, and what docs/copy.md says to write into a copy is run."""

import ast
import math
import re
import shutil
import textwrap
from types import ModuleType

import pytest
import torch
from helpers import ROOT, SMALL, TRAINING, call, path_of, saved
from processes import ended, forked, logs, start_ranks

from common import losses
from common.models import conv, mlp
from common.options import GanOptions
from gradient_audit import GradientAudit
from scripts import gan_detach
from scripts.tools.finished_run import load_generator

SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "copy.md").read_text(), re.M | re.S)
OWN, HINGE, ACCUMULATION, COSINE, SCHEDULE, WARM_UP, CLIPPING, SCALER, SCALED, TWICE, LOADING = SNIPPETS
ROWS = re.findall(r"^\| `(?:train_step|common/losses).*", (ROOT / "README.md").read_text(), re.M)
TAKEN = {*re.findall(r"`(\w+)`", "".join(ROWS))}  # train_step, and what it needs of its script
FILES = {*re.findall(r"(\w+)\.py", ROWS[-1])}
STEP = """
import torch
from step import *

networks = [[torch.nn.Linear(3, size) for _ in range({pairs})] for size in (3, 1)]
optimizers = [torch.optim.SGD(torch.nn.ModuleList(part).parameters()) for part in networks]
for network in sum(networks, []):
    network.register_forward_pre_hook(lambda _, given: given[:1])  # without labels
results = train_step(*sum(networks, []), *optimizers, *{given})
assert all(value.isfinite() for value in results.values())
"""
GIVEN = {"gan_conditional": "torch.ones(3, 4, 3)", "cyclegan": "[ImagePool(), ImagePool(), *torch.ones(2, 4, 3)]"}
RATE = GanOptions().for_images(torch.empty(1, 1, 8, 8)).lr


def names(node):
    """Return the names that a statement of a script defines or imports."""
    named = [alias.asname or alias.name for alias in getattr(node, "names", [])]
    return {getattr(node, "name", ""), *named, *(target.id for target in getattr(node, "targets", []))}


@pytest.mark.parametrize("script", TRAINING)
def test_a_step_runs_in_a_folder_that_holds_what_the_readme_says_it_needs(script, tmp_path):
    nodes = ast.parse(path_of(script).read_text()).body
    taken = [node for node in nodes if names(node) & TAKEN]
    used = {node.id for part in taken for node in ast.walk(part) if isinstance(node, ast.Name)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) and names(node) & used]
    text = "\n".join(map(ast.unparse, imports + taken))
    for name in re.findall(r"^from common\.(\w+)", text, re.M):
        assert name in FILES
        shutil.copy(ROOT / "common" / f"{name}.py", tmp_path)
    (tmp_path / "step.py").write_text(text.replace("from common.", "from "))
    driver = STEP.format(pairs=1 + (script == "cyclegan"), given=GIVEN.get(script, "torch.ones(2, 4, 3)"))
    (tmp_path / "main.py").write_text(driver)
    done = forked(tmp_path / "main.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr


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
@pytest.mark.usefixtures("few_objects")
def test_accumulated_gradients_are_those_of_the_whole_batch():
    parts, others = make_all(), make_all()
    names = "generator", "discriminator", "optimizer_g", "optimizer_d"
    given = dict(zip(names, parts, strict=True)) | vars(losses)
    for step in range(3):
        real, z = batch(step)
        with GradientAudit(generator=parts[0], discriminator=parts[1]) as audit:
            exec(ACCUMULATION, given | {"real": real, "z": z})
        assert not audit.findings
        gan_detach.train_step(*others, real, z)
    assert_same_weights(parts, others)


LEAST_SQUARES = """
from common.cyclegan_models import least_squares_discriminator_loss as discriminator_loss
from common.cyclegan_models import least_squares_generator_loss as generator_loss
"""


def hinge(order, losses=HINGE):
    """Return the step of an update order, with the losses of the docs in place of those that it imports."""
    names = {"__file__": str(path_of(f"gan_{order}")), "__name__": order}
    exec(path_of(f"gan_{order}").read_text(), names)
    exec(losses, names)
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
def test_one_stage_takes_losses_that_fall_in_the_logit_of_a_fake():
    parts, others = make_all(), make_all()
    assert (parts[1](parts[0](batch(0)[1])) < 0).any()  # where D's least-squares loss falls
    for number in range(3):
        hinge("one_stage", LEAST_SQUARES)(*parts, *batch(number))
        hinge("simultaneous", LEAST_SQUARES)(*others, *batch(number))
    assert_same_weights(parts, others)


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


DECAY = re.search(r" +for optimizer.*\n +optimizer\.param_groups.*\n", path_of("gan_detach").read_text()).group()


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


def test_a_rate_of_the_step_is_right_after_more_steps(tmp_path):
    linear = "    rate = linear_decay(options.steps, options.steps // 2)\n"
    script = edited(tmp_path, (linear, f"    {COSINE}"), ("import sys", "import math, sys"))
    call(script, *SMALL, "--steps", 2, "--runs-dir", tmp_path)
    call(script, "--resume", next(tmp_path.glob("gan_mine/*")), "--steps", 4)
    rate = saved(tmp_path)["optimizer_g"]["param_groups"][0]["lr"]
    assert rate == pytest.approx(RATE * (1 + math.cos(math.pi * 3 / 4)) / 2, rel=1e-12)


def test_the_decay_of_an_average_that_warms_up_rises_to_that_of_the_options():
    names = vars(gan_detach) | {"generator": torch.nn.Linear(1, 1), "options": gan_detach.GanOptions(ema=0.25)}
    exec(WARM_UP, names)
    for weight, mean in ((0, 0), (11, 9), (13, 12), (0, 3)):  # decays of 2/11, 3/12 and, limited, 1/4
        names["generator"].weight.data.fill_(weight)
        names["average"].update_parameters(names["generator"])
        assert names["average"].module.weight.item() == pytest.approx(mean)


HOOK = "        optimizer.register_step_pre_hook(run.ranks.average_gradients)\n"
CLIPPED = HOOK, HOOK + textwrap.indent(CLIPPING, "    ")


def clipped(folder):
    """Train a copy with the clipping of the docs for a step."""
    call(edited(folder, CLIPPED), *SMALL, "--steps", 1, "--runs-dir", folder)


@pytest.mark.parametrize("count", [1, 2])
def test_the_gradient_of_the_global_batch_is_clipped_in_one_process_and_in_two(count, tmp_path):
    processes = start_ranks(count, tmp_path, clipped, tmp_path)
    assert ended(processes) == [0] * count, logs(tmp_path, count)
    entries = saved(tmp_path)["optimizer_d"]["state"].values()  # their first means, without momentum, are the gradient
    norm = torch.cat([entry["exp_avg"].flatten() for entry in entries]).norm().item()
    assert norm == pytest.approx(0.1, rel=1e-4)  # clip_grad_norm_ adds 1e-6 to it


def test_scaled_losses_train_the_same_weights_to_the_bit_also_where_gradients_are_clipped(tmp_path):
    script = path_of("gan_detach").read_text()
    update = re.search(r" +optimizer_d\.zero_grad.*optimizer_g\.step\(\)\n", script, re.S).group()
    loop, (main, step) = "    for step, real in", (textwrap.indent(snippet, "    ") for snippet in (SCALER, SCALED))
    scaling = (update, step), (loop, main + loop), ("real, z)", "real, z, scaler)")
    too_much = ("device.type)", "device.type, 2.0**127)"), ("(d_loss)", "(4 * d_loss)")  # for two steps
    for runs, edits in (("plain", ()), ("scaled", scaling), ("overflow", (*scaling, *too_much))):
        call(edited(tmp_path, CLIPPED, *edits), *SMALL, "--steps", 3, "--runs-dir", tmp_path / runs)
    plain, scaled, overflow = (saved(tmp_path / runs) for runs in ("plain", "scaled", "overflow"))
    assert scaled["scaler"]["_growth_tracker"] == 3
    assert overflow["scaler"]["scale"] == 2**125  # and no weight is NaN, or it would not have been saved
    for name in ("generator", "discriminator"):
        torch.testing.assert_close(scaled[name], plain[name], rtol=0, atol=0)


def test_a_data_set_that_is_named_twice_gives_two_batches(tmp_path):
    loop = "    for step, real in run.steps(images, state=state, pictures=pictures):\n"
    both = f"    {TWICE}        assert first.shape == second.shape and not first.equal(second)\n        real = first\n"
    call(edited(tmp_path, (loop, both)), *SMALL, "--steps", 1, "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 1


def test_a_run_of_own_networks_is_one_that_sample_uses(tmp_path):
    make_networks, call_it = OWN.split("\n\n\n")
    networks = "    networks = options.make_networks(images.shape[1:])\n"
    edits = ("import torch\n", f"import torch\nfrom torch import nn\n\n{make_networks}\n"), (networks, f"    {call_it}")
    script = edited(tmp_path, *edits)
    call(script, "--steps", 1, "--batch-size", 4, "--device", "cpu", "--augment", "on", "--runs-dir", tmp_path)
    (tmp_path / "gan_mine.py").write_text(f"from torch import nn\n\n{make_networks}")
    (run,) = tmp_path.glob("gan_mine/*")
    call("sample", run, "--networks", f"{tmp_path / 'gan_mine.py'}:make_networks", "--device", "cpu")
    assert (run / "samples.png").exists()


def test_another_program_loads_the_average_and_exports_it_for_any_batch_size(tmp_path, monkeypatch):
    call("gan_detach", "--steps", 1, "--batch-size", 4, "--device", "cpu", "--runs-dir", tmp_path)
    monkeypatch.chdir(next(tmp_path.glob("gan_detach/*")))
    names = {"torch": torch, "conv": conv}
    exec(LOADING, names)
    for count in (1, 2, 5):
        z = torch.randn(count, 64)
        assert names["generator"](z).equal(load_generator(".")(z))
        torch.testing.assert_close(names["program"].module()(z), names["generator"](z))


def test_a_schedule_goes_on_where_a_resumed_run_has_stopped(tmp_path):
    make, keep, step = SCHEDULE.splitlines()
    script = edited(
        tmp_path,
        (DECAY, ""),
        ("    average = AveragedModel", f"    {make}\n    average = AveragedModel"),
        ("    for step, real in", f"    {keep}\n    for step, real in"),
        ("        run.log(step, results)\n", f"        {step}\n        run.log(step, results)\n"),
    )
    for runs, steps in (("whole", 4), ("parts", 2)):
        call(script, *SMALL, "--steps", steps, "--runs-dir", tmp_path / runs)
    call(script, "--resume", next((tmp_path / "parts").glob("*/*")), "--steps", 4)
    whole, parts = (saved(tmp_path / runs) for runs in ("whole", "parts"))
    for name in ("schedule_g", "optimizer_g", "generator"):
        torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=0)
    assert whole["optimizer_g"]["param_groups"][0]["lr"] == pytest.approx(RATE * 0.999**4, rel=1e-12)
