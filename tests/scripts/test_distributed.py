"""More processes, the same step: what torchrun starts ends with the weights of one process, and all end together.

Forked processes with the environment of torchrun stand for most runs; `pytest -m tools` takes torchrun itself.
"""

import itertools
import os
import re
import signal
from collections import Counter
from functools import partial

import pytest
import torch
import torch.distributed as dist
from helpers import GANS, call, module_of, open_run, path_of, points_of, saved, train
from PIL import Image
from processes import PATIENCE, ended, logs, program, start_ranks, wait_until

from common import data
from common.errors import BadInput, error_in_a_line
from common.run import Run

MLP = {"model": "mlp", "image_size": 8}
SCRIPTS = dict.fromkeys([*GANS, "gan_conditional"], MLP) | {
    "gan_one_stage": {"model": "conv"},
    "gan_wgan_gp": MLP | {"critic_steps": 2},
    "gan_r3": MLP | {"penalty_every": 2},
    "cyclegan": {"width": 4, "blocks": 1, "image_size": 12, "identity_weight": 5.0, "ema": 0.5},
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
    steps = Run.steps

    def watched_steps(run, *datasets, state, **shown):
        sent.clear()  # of what the processes exchanged when they connected
        kept.clear()
        kept.update(state)
        return steps(run, *datasets, state=state, **shown)

    def counted(operation):
        def exchange(*values):
            sent[getattr(values[-1], "nbytes", 0)] += 1
            operation(*values)

        return exchange

    Run.steps, dist.all_reduce = watched_steps, counted(dist.all_reduce)
    dist.all_gather_object = counted(dist.all_gather_object)
    for script, options in SCRIPTS.items():
        sent.clear()
        if script == "cyclegan":
            options = options | {"dataset": str(domains)}
        kind = module_of(script).main.__annotations__["options"]
        train(module_of(script), kind(steps=STEPS, batch_size=BATCH, device="cpu", runs_dir=folder, **options))
        state = {name: part.state_dict() for name, part in kept.items()}
        rank = os.environ.get("RANK", 0)
        torch.save({"state": state, "sent": dict(sent)}, folder / f"{script}-{rank}.pt")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folders in which one process and two have trained everything."""
    domains = tmp_path_factory.mktemp("domains")
    for number in range(20):
        path = domains / f"train{'AB'[number % 2]}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.effect_noise((18, 20), 100).save(path)
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    runs = [start_ranks(count, folder, train_everything, folder, domains) for count, folder in enumerate(folders, 1)]
    for count, (folder, processes) in enumerate(zip(folders, runs, strict=True), 1):
        assert ended(processes) == [0] * count, logs(folder, count)
    return folders


def left_in(folder, script, rank=0):
    return torch.load(folder / f"{script}-{rank}.pt", weights_only=True)


every_script = pytest.mark.parametrize("script", SCRIPTS)


def furthest(found, expected):
    """Return the largest difference between two networks, relative to the largest weight."""
    ours, theirs = (torch.cat([part.double().flatten() for part in each.values()]) for each in (found, expected))
    return (ours - theirs).abs().max() / theirs.abs().max()


@pytest.mark.numerics
@every_script
def test_both_processes_end_with_the_same_bits_and_the_weights_and_pools_of_one(trained, script):
    one, two = trained
    expected, found, other = (left_in(folder, script, rank)["state"] for folder, rank in ((one, 0), (two, 0), (two, 1)))
    torch.testing.assert_close(other, found, rtol=0, atol=0)
    for name in expected.keys() - {"optimizer_g", "optimizer_d"}:
        assert furthest(found[name], expected[name]) <= 1e-12, name


@every_script
def test_gradients_and_the_fakes_of_a_pool_are_exchanged_once_a_step_and_nothing_else(trained, script):
    expected = Counter()
    for moments in (left_in(trained[1], script)["state"][f"optimizer_{it}"]["state"] for it in "gd"):
        numbers = sum(moment["exp_avg"].numel() for moment in moments.values()) + len(moments)  # and who has a gradient
        expected[8 * numbers] += int(moments[0]["step"])
    if script == "cyclegan":  # this process's fakes, for each of the two pools
        expected += Counter({8 * BATCH // 2 * 3 * 12 * 12: 2 * STEPS})
    for rank in range(2):
        sent = left_in(trained[1], script, rank)["sent"]
        assert {size: times for size, times in sent.items() if size > 64} == expected  # others: the log's


@pytest.mark.numerics
@every_script
def test_rank_0_alone_writes_and_prints_and_logs_the_means_of_the_whole_batch(trained, script):
    (expected,), (folder,) = ((folder / script).iterdir() for folder in trained)
    ours, theirs = points_of(folder), points_of(expected)
    assert len(list(folder.glob("*tfevents*"))) == 1
    for tag in theirs.keys() - {"speed/steps_per_second"}:
        torch.testing.assert_close(ours[tag], theirs[tag], rtol=1e-6, atol=1e-12)  # curves are written in float32
    first, second = logs(trained[1], 2)
    assert (first.count("Done: 10 steps."), second) == (len(SCRIPTS), "")


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
        assert furthest(resumed[name], straight[name]) <= 1e-12


def command_in_float64(script, *arguments):
    compute_in_float64()
    module_of(script).linear_decay = lambda *_: lambda done: 1.0  # rates that do not depend on --steps
    call(script, *arguments)


# The end: at bad input, a signal, or a bad image of one of them.

REFUSED = {
    "--image-size 60": "--image-size: conv takes",
    "--steps 1{rank}": "the processes have different options or images; start all with the same command",
}


def command_of_rank(arguments):
    call("gan_detach", *arguments.format(rank=os.environ["RANK"]).split())


@pytest.mark.parametrize(("arguments", "told"), REFUSED.items())
def test_bad_input_is_told_and_ends_all_processes(arguments, told, tmp_path):
    arguments += f" --runs-dir {tmp_path / 'runs'}"
    assert ended(start_ranks(2, tmp_path, command_of_rank, arguments)) == [2, 2]
    for log in logs(tmp_path, 2):
        assert log.startswith(f"error: {told}") and log.count("\n") == 1
    assert not (tmp_path / "runs").exists()


ENDLESS = ["--model=mlp", "--steps=1000000", "--log-every=5", "--sample-every=5", "--checkpoint-every=5"]


def running(folder):
    """Wait until the run in `folder` has shown its samples of step 15."""
    wait_until(lambda: list(folder.glob("*/*/samples/step-000015.png")))


def test_a_signal_to_one_process_ends_all_at_the_same_step(tmp_path):
    processes = start_ranks(2, tmp_path, call, "gan_detach", *ENDLESS, "--runs-dir", tmp_path / "runs")
    running(tmp_path / "runs")
    os.kill(processes[1].pid, signal.SIGTERM)
    assert ended(processes) == [128 + signal.SIGTERM] * 2
    step = int(re.search(r"Interrupted after step (\d+)\.", logs(tmp_path, 2)[0]).group(1))
    assert saved(tmp_path / "runs")["step"] == step
    assert step % 5 == 0


def leave_in_one_process(folder, rank):
    with error_in_a_line(), open_run(folder, steps=1000) as run:
        layer = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(layer.parameters())
        optimizer.register_step_pre_hook(run.ranks.average_gradients)
        run.ranks.meet = partial(run.ranks.meet, 3)
        for (step,) in run.steps(state={"layer": layer, "optimizer": optimizer}, pictures={}):
            layer(torch.ones(2, 1)).sum().backward()
            optimizer.step()
            run.log(step, {})
            if step == 3 and run.ranks.rank == rank:
                break


@pytest.mark.parametrize("rank", [0, 1])
def test_break_in_one_process_alone_ends_both_with_a_line_and_no_signal(rank, tmp_path):
    assert ended(start_ranks(2, tmp_path, leave_in_one_process, tmp_path, rank)) == [1, 1]
    for log in logs(tmp_path, 2):
        assert log.splitlines()[-1].startswith("error: another process of this run has ended")


def test_an_image_that_goes_bad_in_one_process_is_named_and_its_end_ends_the_others_with_a_message(tmp_path):
    arguments = [*ENDLESS, "--runs-dir", tmp_path / "runs"]
    assert ended(start_ranks(2, tmp_path, meet_a_bad_image_in_step_8, arguments)) == [1, 2]
    lines = [[line for line in log.splitlines() if line.startswith("error: ")] for log in logs(tmp_path, 2)]
    assert lines[1] == ["error: 7.png cannot be read"]
    assert len(lines[0]) == 1
    assert lines[0][0].startswith("error: another process of this run has ended, so this one ends too (")
    assert saved(tmp_path / "runs")["step"] == 5


def meet_a_bad_image_in_step_8(arguments):
    to_float, steps = data.to_float, itertools.count(1)

    def bad(images):
        if next(steps) == 9 and os.environ["RANK"] == "1":  # the first ones are shown as real images
            raise BadInput("7.png cannot be read")
        return to_float(images)

    data.to_float = bad
    call("gan_detach", *arguments)


@pytest.mark.tools
def test_torchrun_trains_in_two_processes_of_which_one_prints_and_a_signal_ends_both_with_a_checkpoint(tmp_path):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", path_of("gan_detach"), *ENDLESS]
    with program(*command, "--runs-dir", tmp_path) as process:
        running(tmp_path)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
    (step,) = re.findall(r"Interrupted after step (\d+)\.", output)
    words = ["Trains", "Interrupted", "Continue:", "Samples:", "TensorBoard:"]
    assert [line.split()[0] for line in output.splitlines()] == words
    assert saved(tmp_path)["step"] == int(step)
