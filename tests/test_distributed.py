"""More processes, the same step: what torchrun starts ends with the weights of one process, and ends together.

Processes forked from a warm server, with the environment that torchrun gives its own, stand for most of its runs. Those
that take torchrun itself and longer than the suite has, signals and the death of a process, are run by

    pytest -m torchrun
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from helpers import GANS, ROOT, module_of, path_of
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from processes import PATIENCE, program, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import data
from common.data import batches, load_images
from common.run.command_line import launch
from common.run.folder import locked
from common.run.options import pick_device
from common.run.ranks import Ranks, one_before_the_others
from common.training_run import TrainingRun

SCRIPTS = {
    **{name: {"model": "dcgan" if name in ("gan_resample", "gan_one_stage") else "mlp"} for name in GANS},
    "cyclegan": {"width": 4, "blocks": 1, "image_size": 12, "load_size": 16, "identity_weight": 5.0, "ema": 0.5},
}
STEPS = 10
BATCH = 7  # neither two nor three processes get equal shares; a pool of 50 is full after 8 steps


@pytest.fixture(scope="module")
def start():
    """Return a function that starts processes as torchrun would; see `started`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{Path(__file__).parent}")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        forkserver.ensure_running()

    def started(count, folder, function, *arguments):
        """Run `function(*arguments)` in `count` processes; each prints into a file of `folder` named by its rank."""
        store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        shared = {
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(store.port),
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "TORCHELASTIC_RUN_ID": "test",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        daemon = function is not stream_everything  # which starts processes of its own
        processes = []
        for rank in range(count):
            own = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} if count > 1 else {}
            processes.append(
                context.Process(target=as_rank, args=(own, folder / str(rank), function, *arguments), daemon=daemon)
            )
            processes[-1].start()
        processes[0].store = store  # for as long as they live
        return processes

    return started


def as_rank(environment, log, function, *arguments):
    os.environ.update(environment)
    torch.set_num_threads(1)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    function(*arguments)


def ended(processes):
    """Return the exit codes; no process may hang."""
    for process in processes:
        process.join(PATIENCE)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    return codes


def logs(folder, count):
    return [(folder / str(rank)).read_text() for rank in range(count)]


def command(script, *arguments):
    """What the command line `script arguments` does."""
    module = module_of(script)
    sys.argv = [script, *map(str, arguments)]
    launch(module.main, module.main.__annotations__["options"])


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
    keep, all_reduce = TrainingRun.keep, dist.all_reduce

    def watched_keep(run, **state):
        kept.clear()
        kept.update(state)
        keep(run, **state)

    def counted_all_reduce(tensor):
        sent[tensor.numel() * tensor.element_size()] += 1
        all_reduce(tensor)

    TrainingRun.keep, dist.all_reduce = watched_keep, counted_all_reduce
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
def trained(start, tmp_path_factory):
    """Return what every script has left with one, two and three processes: {count: {script: [of each rank]}}."""
    domains = tmp_path_factory.mktemp("domains")
    for number in range(20):
        path = domains / f"train{'AB'[number % 2]}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.effect_noise((18, 20), 100).save(path)
    folders = {count: tmp_path_factory.mktemp(f"processes-{count}") for count in (1, 2, 3)}
    runs = {count: start(count, folder, train_everything, folder, domains) for count, folder in folders.items()}
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


def networks_and_pools(result):
    return {name: part for name, part in result["state"].items() if not name.startswith("optimizer")}


def flat(network):
    return torch.cat([tensor.double().flatten() for tensor in network.values()])


@pytest.mark.numerics
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("script", SCRIPTS)
def test_ten_steps_end_with_the_weights_and_pools_of_one_process(trained, script, count):
    expected = networks_and_pools(trained[1][script][0])
    for name, network in networks_and_pools(trained[count][script][0]).items():
        off = (flat(network) - flat(expected[name])).abs().max() / flat(expected[name]).abs().max()
        assert off <= 1e-12, name


@pytest.mark.numerics
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("script", SCRIPTS)
def test_all_processes_end_with_the_same_bits(trained, script, count):
    first, *others = (result["state"] for result in trained[count][script])
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("script", SCRIPTS)
def test_what_an_optimizer_steps_on_and_a_pool_takes_in_travels_once_a_step_and_nothing_else(trained, script, count):
    state = trained[count][script][0]["state"]
    sizes = [8 * sum(moment["exp_avg"].numel() for moment in state[f"optimizer_{it}"]["state"].values()) for it in "gd"]
    logged = 8 * (5 if script == "cyclegan" else 4)
    expected = Counter({sizes[0]: STEPS}) + Counter({sizes[1]: STEPS}) + Counter({logged: 3})
    if script == "cyclegan":  # the fakes of the whole batch, for each of the two pools
        expected += Counter({8 * BATCH * 12 * 12: 2 * STEPS})
    for result in trained[count][script]:
        assert result["sent"] == expected


@pytest.mark.numerics
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("script", SCRIPTS)
def test_rank_0_alone_writes_and_logs_the_means_of_the_whole_batch(trained, script, count):
    (folder,), (expected,) = (list((trained[n]["folder"] / script).iterdir()) for n in (count, 1))
    ours, theirs = (EventAccumulator(str(path)).Reload() for path in (folder, expected))
    assert len(list(folder.glob("*tfevents*"))) == 1
    for tag in set(theirs.Tags()["scalars"]) - {"throughput/images_per_second"}:
        for one, other in zip(ours.Scalars(tag), theirs.Scalars(tag), strict=True):
            assert one.step == other.step
            assert one.value == pytest.approx(other.value, rel=1e-6)  # curves are written in float32


@pytest.mark.numerics
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_checkpoint_does_not_tell_how_many_processes_wrote_it(trained, script):
    checkpoints = []
    for count in (1, 2, 3):
        (path,) = (trained[count]["folder"] / script).glob("*/checkpoint.pt")
        checkpoints.append(dict(leaves(torch.load(path, weights_only=True))))
        del checkpoints[-1]["options", "runs_dir"]
    for checkpoint in checkpoints[1:]:
        assert checkpoint.keys() == checkpoints[0].keys()
        for name, value in checkpoint.items():
            if isinstance(value, torch.Tensor):
                # Ten times what weights may differ by: CycleGAN's gradients, in Adam's moments, are weighted by 10.
                torch.testing.assert_close(value, checkpoints[0][name], rtol=1e-12, atol=1e-11)
            else:
                assert value == checkpoints[0][name]


def leaves(state, path=()):
    """Yield every value in dictionaries of dictionaries with the keys that lead to it."""
    for key, value in state.items():
        yield from leaves(value, (*path, key)) if isinstance(value, dict) else [((*path, key), value)]


def test_rank_0_alone_prints(trained):
    for count in (2, 3):
        first, *others = logs(trained[count]["folder"], count)
        assert first.count("Done: 10 steps.") == len(SCRIPTS)
        assert others == [""] * (count - 1)


def saved(runs):
    """Return the one checkpoint below `runs`."""
    (path,) = runs.glob("*/*/checkpoint.pt")
    return torch.load(path, weights_only=True)


@pytest.mark.numerics
def test_a_run_made_with_two_processes_resumes_with_three_and_with_one(start, tmp_path):
    def train(count, *arguments):
        assert ended(start(count, tmp_path, command_in_float64, "gan_resample", *arguments)) == [0] * count, logs(
            tmp_path, count
        )

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
    command(script, *arguments)


REFUSED = {
    "--batch-size 2": "--batch-size 2: leaves some of 3 processes without an image",
    "--steps 1.5": "--steps",
    "--model gan": "--model",
    "--image-size 60": "--image-size 60",
    "--device cuda:0": "--device cuda:0: several processes cannot share it",
}


@pytest.mark.parametrize(("arguments", "named"), REFUSED.items())
def test_bad_input_is_told_once_and_ends_all_processes(arguments, named, start, tmp_path):
    processes = start(3, tmp_path, command, "gan_detach", "--runs-dir", tmp_path / "runs", *arguments.split())
    assert ended(processes) == [2, 2, 2]
    (line,) = "".join(logs(tmp_path, 3)).splitlines()
    assert line.startswith("error: ")
    assert named in line
    assert not (tmp_path / "runs").exists()


def contradict(folder):
    command("gan_detach", "--model", "mlp", "--runs-dir", folder / "runs", "--steps", 3 + int(os.environ["RANK"]))


def test_processes_with_different_options_are_refused_in_one_line(start, tmp_path):
    assert ended(start(2, tmp_path, contradict, tmp_path)) == [2, 2]
    assert re.fullmatch(
        r"error: --steps: [34] here and [34] in another process; start all alike\n", "".join(logs(tmp_path, 2))
    )
    assert not (tmp_path / "runs").exists()


def test_what_one_process_alone_meets_is_told_once_and_ends_the_others(start, tmp_path):
    (tmp_path / "file").touch()
    processes = start(2, tmp_path, command, "gan_detach", "--model", "mlp", "--runs-dir", tmp_path / "file")
    assert ended(processes) == [2, 1]
    (line,) = "".join(logs(tmp_path, 2)).splitlines()
    assert line.startswith(f"error: --runs-dir: {tmp_path / 'file'}")


ENDLESS = ["--model=mlp", "--steps=1000000", "--log-every=5", "--sample-every=5", "--checkpoint-every=5"]


def running(folder, step=15):
    """Wait until the run in `folder` has shown its samples of `step`."""
    wait_until(lambda: list(folder.glob(f"*/*/samples/step-{step:06d}.png")))


def test_a_signal_to_one_process_ends_all_at_the_same_step(start, tmp_path):
    processes = start(2, tmp_path, command, "gan_detach", *ENDLESS, "--runs-dir", tmp_path / "runs")
    running(tmp_path / "runs")
    os.kill(processes[1].pid, signal.SIGTERM)
    assert ended(processes) == [128 + signal.SIGTERM] * 2
    step = int(re.search(r"Interrupted after step (\d+)\.", logs(tmp_path, 2)[0]).group(1))
    assert saved(tmp_path / "runs")["step"] == step
    assert step % 5 == 0


def test_an_image_that_goes_bad_in_one_process_ends_all_with_its_name_and_the_last_checkpoint(start, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for number in range(80):
        Image.effect_noise((8, 8), 100).save(images / f"{number:02}.png")
    order = data.batch_order(80, 8, data.seed_for(0, 0))
    seen = {*next(data.batch_order(80, 64, 0)).tolist(), *(number for _ in range(6) for number in next(order).tolist())}
    bad = images / f"{min(set(next(order).tolist()) - seen):02}.png"
    png = bad.read_bytes()
    bad.write_bytes(png[:60] + bytes(len(png) - 72) + png[-12:])  # which neither its header nor its end shows

    arguments = ["--dataset", images, "--image-size", 8, *ENDLESS, "--batch-size", 8, "--runs-dir", tmp_path / "runs"]
    processes = start(2, tmp_path, stream_everything, "gan_detach", *arguments)
    assert ended(processes) == [1, 1]
    told = "".join(logs(tmp_path, 2))
    assert "Traceback" not in told
    (line,) = [line for line in told.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {bad} cannot be read as an image (")
    assert "; the last checkpoint, of step 5, is " in line


def test_a_run_that_another_process_trains_is_refused_once_and_ends_all(start, tmp_path):
    arguments = ["--model", "mlp", "--image-size", 8, "--steps", 1, "--device", "cpu", "--runs-dir", tmp_path / "runs"]
    assert ended(start(1, tmp_path, command, "gan_detach", *arguments)) == [0]
    (run,) = tmp_path.glob("runs/*/*")
    with locked(run):
        assert ended(start(2, tmp_path, command, "gan_detach", "--resume", run, "--steps", 2)) == [2, 1]
    assert "".join(logs(tmp_path, 2)) == (
        f"error: {run}: another process is training this run; wait for it, or end it first\n"
    )


def stream_everything(*arguments):
    data.MEMORY_LIMIT = 0
    command(*arguments)


def test_a_curve_of_the_users_own_is_the_mean_over_the_whole_batch(start, tmp_path):
    assert ended(start(2, tmp_path, log_the_rank, tmp_path / "runs")) == [0, 0], logs(tmp_path, 2)
    (run,) = tmp_path.glob("runs/*/*")
    events = EventAccumulator(str(run)).Reload()
    assert [point.value for point in events.Scalars("rank")] == pytest.approx([2 / 3])  # 1 image and 2


def log_the_rank(runs):
    module = module_of("gan_detach")
    step, rank = module.train_step, int(os.environ["RANK"])
    module.train_step = lambda *arguments: step(*arguments) | {"rank": rank}
    command("gan_detach", "--model", "mlp", "--batch-size", 3, "--steps", 1, "--device", "cpu", "--runs-dir", runs)


def test_a_process_that_dies_ends_the_others_with_a_message(start, tmp_path):
    processes = start(3, tmp_path, command, "gan_detach", *ENDLESS, "--runs-dir", tmp_path / "runs")
    running(tmp_path / "runs")
    processes[1].kill()
    assert ended(processes) == [1, -signal.SIGKILL, 1]
    told = "".join(logs(tmp_path, 3))
    assert told.count("error: another process of this run has ended, so this one ends too (") == 1
    assert "Traceback" not in told
    assert saved(tmp_path / "runs")["step"] % 5 == 0


@given(st.integers(1, 9), st.integers(0, 100))
def test_the_shares_are_the_batch_cut_into_nearly_equal_parts(count, more):
    whole = torch.arange(count + more)
    shares = []
    for rank in range(count):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dist, "is_initialized", lambda: True)
            patch.setattr(dist, "get_rank", lambda rank=rank: rank)
            patch.setattr(dist, "get_world_size", lambda: count)
            ranks = Ranks(len(whole))
        shares.append(whole[ranks.rows])
        assert ranks.part == len(shares[-1]) / len(whole)
    assert torch.cat(shares).equal(whole)
    assert {len(share) for share in shares} <= {len(whole) // count, -(-len(whole) // count)}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_process_reads_its_rows_of_every_batch_and_no_other_image(streamed, tmp_path, monkeypatch):
    for shade in range(20):
        Image.new("L", (8, 8), 10 * shade).save(tmp_path / f"{shade:02}.png")
    if streamed:
        monkeypatch.setattr(data, "MEMORY_LIMIT", 0)
    images = load_images(str(tmp_path), 8)
    wholes = batches(images, 7, 3)
    shares = [batches(images, 7, 3, rows=rows) for rows in (slice(0, 2), slice(2, 4), slice(4, 7))]
    if streamed:
        monkeypatch.setattr(images, "read", counted := Counted(images.read))
    for _ in range(5):
        whole = next(wholes)
        assert torch.cat([next(share) for share in shares]).equal(whole)
        if streamed and counted.paths:  # the first batch is read in this process, the later ones by workers
            first = counted.paths.copy()
    if streamed:
        assert len(first) == 14
        assert sorted(first[:7]) == sorted(first[7:])


class Counted:
    def __init__(self, read):
        self.read, self.paths = read, []

    def __call__(self, path):
        self.paths.append(path)
        return self.read(path)


def test_all_processes_start_with_the_weights_of_rank_0(start, tmp_path):
    assert ended(start(2, tmp_path, start_with_the_rank_as_weights, tmp_path)) == [0, 0], logs(tmp_path, 2)


def start_with_the_rank_as_weights(folder):
    module = module_of("gan_detach")
    run = TrainingRun("script.py", module.GanOptions(batch_size=4, steps=1, runs_dir=folder))
    network = torch.nn.Linear(2, 3)
    torch.nn.init.constant_(network.weight, float(os.environ["RANK"]))
    run.keep(network=network)
    run.show(nothing=lambda: torch.zeros(1, 1, 8, 8))
    for _ in run.steps(torch.zeros(8, 1, 8, 8, dtype=torch.uint8)):
        assert (network.weight == 0).all()


def test_an_optimizer_whose_gradients_are_not_averaged_is_refused(start, tmp_path):
    assert ended(start(2, tmp_path, train_without_averaging, tmp_path)) == [1, 1]
    for log in logs(tmp_path, 2):
        assert "BadInput: optimizer_d: its gradients are not averaged over the processes; before the loop, call" in log


def train_without_averaging(folder):
    module = module_of("gan_detach")
    run = TrainingRun("script.py", module.GanOptions(batch_size=4, steps=1, runs_dir=folder))
    optimizer_g, optimizer_d = (torch.optim.SGD(torch.nn.Linear(2, 3).parameters()) for _ in range(2))
    optimizer_g.register_step_pre_hook(run.ranks.average_gradients)
    run.keep(optimizer_g=optimizer_g, optimizer_d=optimizer_d)
    run.show(nothing=lambda: torch.zeros(1, 1, 8, 8))
    next(run.steps(torch.zeros(8, 1, 8, 8, dtype=torch.uint8)))


def test_one_process_downloads_while_the_others_wait(start, tmp_path):
    assert ended(start(3, tmp_path, download_slowly, tmp_path / "data")) == [0, 0, 0], logs(tmp_path, 3)


def download_slowly(path):
    Ranks(3)
    with one_before_the_others():
        if not path.exists():
            time.sleep(0.5)
            path.mkdir()  # fails for the second


def test_noise_within_a_step_is_for_the_images_of_the_process(start, tmp_path):
    assert ended(start(2, tmp_path, ask_for_too_much_noise, tmp_path)) == [1, 1]
    for log in logs(tmp_path, 2):
        assert "ValueError: noise(4) within a step: this process has 2 images of the batch" in log


def ask_for_too_much_noise(folder):
    module = module_of("gan_detach")
    run = TrainingRun("script.py", module.GanOptions(batch_size=4, steps=1, runs_dir=folder))
    run.show(nothing=lambda: torch.zeros(1, 1, 8, 8))
    for _ in run.steps(torch.zeros(8, 1, 8, 8, dtype=torch.uint8)):
        run.noise(4)


def test_each_process_takes_the_cuda_device_of_its_number_or_is_refused(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "99")
    monkeypatch.setenv("LOCAL_RANK", "98")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in (None, "cuda"):
        with pytest.raises(Exception, match=r"--device cuda:98: not on this machine"):
            pick_device(name)
    assert pick_device("cpu").type == "cpu"


def torchrun(*arguments):
    elastic = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return [*elastic, *map(str, arguments)]


def test_torchrun_trains_as_one_process_does(tmp_path):
    """The gradients of a step in float32, to a hundred roundings: weights would differ by what Adam makes of those."""
    arguments = ["--model", "mlp", "--steps", 1, "--device", "cpu"]
    script = path_of("gan_simultaneous")
    done = subprocess.run(
        torchrun(script, *arguments, "--runs-dir", tmp_path / "two"), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Done:", "Samples:", "More", "TensorBoard:"]

    module = module_of("gan_simultaneous")
    module.main(module.GanOptions(model="mlp", steps=1, device="cpu", runs_dir=tmp_path / "one"))
    one, two = (saved(tmp_path / runs) for runs in ("one", "two"))
    for optimizer in ("optimizer_g", "optimizer_d"):
        for ours, theirs in zip(two[optimizer]["state"].values(), one[optimizer]["state"].values(), strict=True):
            expected = theirs["exp_avg"]  # after one step a fixed share of the gradient
            torch.testing.assert_close(ours["exp_avg"], expected, rtol=0, atol=1e-5 * expected.abs().max().item())


@pytest.mark.torchrun
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_torchrun_ends_the_run_with_its_checkpoint_written(number, tmp_path):
    arguments = torchrun(path_of("gan_detach"), *ENDLESS, "--runs-dir", tmp_path)
    with program(arguments) as process:
        running(tmp_path)
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE)
    step = int(re.search(r"Interrupted after step (\d+)\.", output).group(1))
    assert saved(tmp_path)["step"] == step


@pytest.mark.torchrun
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_takes_torchruns_job_down_with_a_message(victim, tmp_path):
    arguments = torchrun(path_of("gan_detach"), *ENDLESS, "--runs-dir", tmp_path)
    with program(arguments) as process:
        running(tmp_path)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ranks = {Path(f"/proc/{pid}/environ").read_bytes().split(b"\0LOCAL_RANK=")[1][:1]: int(pid) for pid in children}
        os.kill(ranks[str(victim).encode()], signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert f"rank      : {victim} (local_rank: {victim})" in errors
    assert "Signal 9 (SIGKILL) received" in errors
    assert saved(tmp_path)["step"] % 5 == 0
