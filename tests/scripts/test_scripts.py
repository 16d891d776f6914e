"""Every training script as its users run it: another process, another folder, two steps; what it leaves; its options.

The processes are forked after torch and TensorBoard are imported, and before anything of ours is.
"""

import re
from dataclasses import fields

import numpy as np
import pytest
import torch
from helpers import GANS, SMALL, TRAINING, call, load, make_images, module_of, options_of, path_of, saved
from PIL import Image
from processes import forked
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.profiler import ProfilerActivity, profile

RATES = {"optimizer/learning_rate/optimizer_g", "optimizer/learning_rate/optimizer_d", "speed/steps_per_second"}
GAN_SCALARS = {"loss/discriminator", "loss/generator", "probability/real", "probability/fake"}
SCORES = {"score/real", "score/fake"}
SCALARS = {"gan_r3": SCORES | {"loss/discriminator", "loss/generator", "penalty/real", "penalty/fake"}}
SCALARS["gan_wgan_gp"] = SCORES | {"loss/wasserstein/critic", "loss/wasserstein/generator", "penalty"}
SCALARS["cyclegan"] = {"loss/discriminator", "loss/adversarial", "loss/cycle"}
CYCLE_IMAGES = {"images/a_to_b_to_a", "images/b_to_a_to_b", "images/identity_of_b_and_of_a"}


def train(script, folder, *arguments):
    every_step = ["--critic-steps", 1] if script == "gan_wgan_gp" else []
    arguments = ["--steps", 2, "--batch-size", 4, "--runs-dir", folder / "runs", *every_step, *arguments]
    done = forked(path_of(script), *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs" / script).iterdir()
    return run


@pytest.mark.smoke
@pytest.mark.parametrize("script", TRAINING)
def test_two_steps_leave_curves_samples_and_a_checkpoint(script, tmp_path):
    folder = train(script, tmp_path, *(["--penalty-every", 1] if script == "gan_r3" else []))
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}", folder.name)

    events = EventAccumulator(str(folder)).Reload()
    tags = events.Tags()
    scalars = SCALARS.get(script, GAN_SCALARS) | RATES
    assert set(tags["scalars"]) == scalars | ({"translation/error"} if script == "cyclegan" else set())
    assert set(tags["images"]) == (CYCLE_IMAGES if script == "cyclegan" else {"images/samples", "real"})
    for tag in scalars:
        assert [point.step for point in events.Scalars(tag)] == [1, 2]
        assert all(np.isfinite(point.value) for point in events.Scalars(tag))
    assert sorted(path.name for path in (folder / "samples").iterdir()) == ["step-000000.png", "step-000002.png"]
    assert len(Image.open(folder / "samples" / "step-000002.png").getcolors(1 << 20)) > 100
    checkpoint = load(folder)
    assert (checkpoint["step"], checkpoint["script"], checkpoint["options"]["steps"]) == (2, script, 2)
    assert checkpoint["command"].startswith("python ") and f"{script}.py --steps 2 --batch" in checkpoint["command"]
    assert {"optimizer_g", "optimizer_d"} < set(checkpoint)
    files = sorted(path.name for path in folder.iterdir() if "tfevents" not in path.name)
    assert files == [".lock", "checkpoint.pt", "samples"]


ALL = (
    "--dataset {images} --image-size 8 --batch-size 3 --steps 2 --lr 3e-4 --betas 0.5 0.9 --ema 0.9 --seed 7 "
    "--device cpu --precision bf16 --runs-dir {runs} --log-every 1 --sample-every 1 --checkpoint-every 1 --name mine"
)
# What every script is run with, and then --resume.
PAIR = f"{ALL} --model mlp --z-dim 5 --lr-d 2e-4 --fit white --no-hold-out --augment on --mirror"
RUNS = dict.fromkeys([*GANS, "gan_conditional"], PAIR) | {
    "gan_wgan_gp": f"{PAIR} --penalty-weight 2.5 --critic-steps 2",
    "gan_r3": f"{PAIR} --penalty-weight 0.5 --penalty-every 2",
    "cyclegan": f"{ALL} --width 2 --blocks 2 --halvings 1 --decay-from 0 --cycle-weight 4 --identity-weight 2",
}
ELSEWHERE = {"--resume": "the second run below", "--init-from": "the third"}


@pytest.mark.parametrize("script", TRAINING)
def test_a_script_runs_with_every_option_goes_on_and_is_what_another_run_starts_from(script, tmp_path):
    published = {f"--{field.name.replace('_', '-')}": field for field in fields(options_of(script))}
    given = {part.replace("--no-", "--") for part in RUNS[script].split() if part.startswith("--")}
    assert given | ELSEWHERE.keys() == published.keys()
    images = tmp_path / "caf\udce9图"  # a byte that is no text, a letter from afar
    for part in ("trainA", "trainB", "testA", "testB"):
        make_images(images / part, 3)
    call(script, *RUNS[script].format(images=images, runs=tmp_path / "runs").split())
    (run,) = (tmp_path / "runs" / script).iterdir()
    assert run.name.endswith("-mine")
    assert len(list((run / "samples").iterdir())) == 3
    options = saved(tmp_path / "runs")["options"]
    for name in published.keys() - {*ELSEWHERE, "--runs-dir"}:
        assert options[published[name].name] != published[name].default, name
    before = saved(tmp_path / "runs")
    rate = 0.5 if script == "cyclegan" else 1.0  # whose rates fall from the first step on
    for optimizer, lr in (("optimizer_g", 3e-4), ("optimizer_d", 3e-4 if script == "cyclegan" else 2e-4)):
        group = before[optimizer]["param_groups"][0]
        assert (group["lr"], group["betas"]) == (pytest.approx(rate * lr, rel=1e-12), (0.5, 0.9))
    call(script, "--resume", run, "--steps", 3)
    after = saved(tmp_path / "runs")
    assert after["step"] == 3
    for name in after.keys() & {"average", "average_a_to_b", "average_b_to_a"}:
        network = after[name.removeprefix("average_") if name != "average" else "generator"]
        for weight, average in ((key, f"module.{key}") for key in network if f"module.{key}" in after[name]):
            expected = 0.9 * before[name][average] + 0.1 * network[weight]
            torch.testing.assert_close(after[name][average], expected)

    given = RUNS[script].format(images=images, runs=tmp_path / "next")
    call(script, *given.split(), "--init-from", run)
    (started,) = (tmp_path / "next" / script).iterdir()
    # The pictures of a run that starts from another one begin where those of that one end.
    assert (started / "samples/step-000000.png").read_bytes() == (run / "samples/step-000003.png").read_bytes()
    run.rename(tmp_path / "moved")
    call(script, "--resume", started, "--steps", 3)
    steps = (run["optimizer_g"]["state"][0]["step"] for run in (after, saved(tmp_path / "next")))
    assert next(steps) == next(steps)  # the optimizers are new


@pytest.mark.parametrize("script", TRAINING)
def test_a_step_reads_no_number_on_the_host_and_its_optimizers_are_those_of_fused_adam(script, tmp_path, monkeypatch):
    """No GPU waits, and test_losses.py holds for the optimizers: autograd sees each step."""
    module = module_of(script)
    step, given = module.train_step, []

    def noted(*arguments, **weights):
        optimizers = [value for value in arguments if isinstance(value, torch.optim.Optimizer)]
        assert [type(optimizer) for optimizer in optimizers] == [torch.optim.SGD] * 2
        given[:] = arguments
        return step(*arguments, **weights)

    monkeypatch.setattr(module, "train_step", noted)
    # Adam reads its rate, but on the CPU alone.
    monkeypatch.setattr(module, "fused_adam", lambda parameters, lr, _: torch.optim.SGD(parameters, lr))
    small = ["--image-size", 12, "--width", 2, "--batch-size", 4, "--device", "cpu"] if script == "cyclegan" else SMALL
    call(script, *small, "--steps", 2, "--runs-dir", tmp_path)  # in which it is asked whether D mixes samples
    with profile(activities=[ProfilerActivity.CPU]) as record:
        step(*given)
    operators = {event.key for event in record.key_averages()}
    assert any("backward" in name.lower() for name in operators)
    if script != "gan_conditional":  # its one_hot looks at the labels, but on the CPU alone
        assert "aten::_local_scalar_dense" not in operators
