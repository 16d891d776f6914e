"""More processes, the same step: what torchrun starts ends with the weights of one process.

Forked processes, with the environment that torchrun gives its own, stand for most of its runs.
"""

import os
from collections import Counter
from functools import partial

import pytest
import torch
import torch.distributed as dist
from helpers import GANS, call, module_of, path_of, saved
from PIL import Image
from processes import ended, logs, python, start_ranks, torchrun
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import data
from common.run import Run

MLP = {"model": "mlp", "image_size": 8}
SCRIPTS = dict.fromkeys([*GANS, "gan_conditional"], MLP) | {
    "gan_one_stage": {"model": "conv"},
    "gan_wgan_gp": MLP | {"critic_steps": 2},
    "gan_r3": MLP | {"penalty_every": 2},
    "cyclegan": {"width": 4, "blocks": 1, "image_size": 12, "load_size": 16, "identity_weight": 5.0, "ema": 0.5},
}
STEPS = 10
BATCH = 6  # a pool of 50 is full after 9 steps


def compute_in_float64():
    """Have all scripts of this process train in float64.

    Adam's eps is raised from 1e-8, which makes 1e8 times more of a gradient that is nothing but rounding, as that of a
    bias before instance normalisation is: no image depends on it. With 1 its steps are no longer than gradients are.
    """
    torch.set_default_dtype(torch.float64)
    data.to_float = lambda images: images.double() / 127.5 - 1
    torch.optim.Adam = partial(torch.optim.Adam, eps=1.0)


def train_everything(folder, domains):
    """Train with every script in float64; leave each rank's final state and the sizes of what it has exchanged.

    domains: folder of two domains, whose images CycleGAN crops and flips.
    """
    compute_in_float64()
    kept, sent = {}, Counter()
    steps, all_reduce, all_gather = Run.steps, dist.all_reduce, dist.all_gather

    def watched_steps(run, *datasets, state, **shown):
        sent.clear()  # of what the processes exchanged when they connected
        kept.clear()
        kept.update(state)
        return steps(run, *datasets, state=state, **shown)

    def counted_all_reduce(tensor):
        sent[tensor.numel() * tensor.element_size()] += 1
        all_reduce(tensor)

    def counted_all_gather(parts, tensor):
        sent[tensor.numel() * tensor.element_size()] += 1
        all_gather(parts, tensor)

    Run.steps, dist.all_reduce, dist.all_gather = watched_steps, counted_all_reduce, counted_all_gather
    for script, options in SCRIPTS.items():
        sent.clear()
        if script == "cyclegan":
            options = options | {"dataset": str(domains)}
        main = module_of(script).main
        main(main.__annotations__["options"](steps=STEPS, batch_size=BATCH, device="cpu", runs_dir=folder, **options))
        state = {name: part.state_dict() for name, part in kept.items()}
        rank = os.environ.get("RANK", 0)
        torch.save({"state": state, "sent": dict(sent)}, folder / f"{script}-{rank}.pt")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return what every script has left with one and with two processes: {count: {script: [of each rank]}}."""
    domains = tmp_path_factory.mktemp("domains")
    for number in range(20):
        path = domains / f"train{'AB'[number % 2]}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.effect_noise((18, 20), 100).save(path)
    folders = {count: tmp_path_factory.mktemp(f"processes-{count}") for count in (1, 2)}
    runs = {count: start_ranks(count, folder, train_everything, folder, domains) for count, folder in folders.items()}
    for count, processes in runs.items():
        assert ended(processes) == [0] * count, logs(folders[count], count)
    return {
        count: {
            script: [torch.load(folder / f"{script}-{rank}.pt", weights_only=True) for rank in range(count)]
            for script in SCRIPTS
        }
        | {"folder": folder}
        for count, folder in folders.items()
    }


several = pytest.mark.parametrize("count", [2])
every_script = pytest.mark.parametrize("script", SCRIPTS)


def flat(network):
    return torch.cat([tensor.double().flatten() for tensor in network.values()])


@pytest.mark.numerics
@several
@every_script
def test_all_processes_end_with_the_same_bits_and_the_weights_and_pools_of_one(trained, script, count):
    found, *others = (result["state"] for result in trained[count][script])
    for other in others:
        torch.testing.assert_close(other, found, rtol=0, atol=0)
    expected = trained[1][script][0]["state"]
    for name in expected.keys() - {"optimizer_g", "optimizer_d"}:
        off = (flat(found[name]) - flat(expected[name])).abs().max() / flat(expected[name]).abs().max()
        assert off <= 1e-12, name


@several
@every_script
def test_gradients_and_the_fakes_of_a_pool_are_exchanged_once_a_step_and_nothing_else(trained, script, count):
    state = trained[count][script][0]["state"]
    sizes = [8 * sum(moment["exp_avg"].numel() for moment in state[f"optimizer_{it}"]["state"].values()) for it in "gd"]
    g_steps = STEPS // 2 if script == "gan_wgan_gp" else STEPS
    expected = Counter({sizes[0]: g_steps}) + Counter({sizes[1]: STEPS})
    if script == "cyclegan":  # this process's fakes, for each of the two pools
        expected += Counter({8 * BATCH // count * 12 * 12: 2 * STEPS})
    for result in trained[count][script]:
        assert {size: times for size, times in result["sent"].items() if size > 64} == expected  # others: the log's


@pytest.mark.numerics
@several
@every_script
def test_rank_0_alone_writes_and_logs_the_means_of_the_whole_batch(trained, script, count):
    (folder,), (expected,) = (list((trained[n]["folder"] / script).iterdir()) for n in (count, 1))
    ours, theirs = (EventAccumulator(str(path)).Reload() for path in (folder, expected))
    assert len(list(folder.glob("*tfevents*"))) == 1
    for tag in set(theirs.Tags()["scalars"]) - {"throughput/images_per_second"}:
        for one, other in zip(ours.Scalars(tag), theirs.Scalars(tag), strict=True):
            assert one.step == other.step
            assert one.value == pytest.approx(other.value, rel=1e-6)  # curves are written in float32


def test_rank_0_alone_prints(trained):
    first, other = logs(trained[2]["folder"], 2)
    assert first.count("Done: 10 steps.") == len(SCRIPTS)
    assert other == ""


@pytest.mark.numerics
def test_a_run_made_with_two_processes_resumes_with_three_and_with_one(tmp_path):
    def train(count, *arguments):
        processes = start_ranks(count, tmp_path, command_in_float64, "gan_resample", *arguments)
        assert ended(processes) == [0] * count, logs(tmp_path, count)

    def options(runs):
        return ["--model", "mlp", "--batch-size", BATCH, "--device", "cpu", "--runs-dir", tmp_path / runs]

    train(1, *options("straight"), "--steps", 9)
    train(2, *options("resumed"), "--steps", 3)
    (run,) = (tmp_path / "resumed" / "gan_resample").iterdir()
    train(3, "--resume", run, "--steps", 6)
    train(1, "--resume", run, "--steps", 9)
    resumed, straight = saved(tmp_path / "resumed"), saved(tmp_path / "straight")
    assert resumed["step"] == 9
    for name in ("generator", "discriminator", "average"):
        off = (flat(resumed[name]) - flat(straight[name])).abs().max()
        assert off <= 1e-12 * flat(straight[name]).abs().max()


def command_in_float64(script, *arguments):
    compute_in_float64()
    call(script, *arguments)


def test_torchrun_trains_as_one_process_does(tmp_path):
    """The gradients of a step in float32, to a hundred roundings: weights would differ by what Adam makes of those."""
    arguments = ["--model", "mlp", "--steps", 1, "--device", "cpu"]
    script = path_of("gan_simultaneous")
    done = python(*torchrun(script, *arguments, "--runs-dir", tmp_path / "two"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Done:", "Samples:", "TensorBoard:"]

    module = module_of("gan_simultaneous")
    module.main(module.GanOptions(model="mlp", steps=1, device="cpu", runs_dir=tmp_path / "one"))
    one, two = (saved(tmp_path / runs) for runs in ("one", "two"))
    for optimizer in ("optimizer_g", "optimizer_d"):
        for ours, theirs in zip(two[optimizer]["state"].values(), one[optimizer]["state"].values(), strict=True):
            expected = theirs["exp_avg"]  # after one step a fixed share of the gradient
            torch.testing.assert_close(ours["exp_avg"], expected, rtol=0, atol=1e-5 * expected.abs().max().item())
