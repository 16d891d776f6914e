"""How several processes end together: at bad input, a signal, a bad image, or the death of one of them.

Forked processes with the environment of torchrun stand for most runs; `pytest -m torchrun` takes torchrun itself.
"""

import itertools
import os
import re
import signal

import pytest
from helpers import call, path_of, saved
from processes import PATIENCE, ended, logs, program, start_ranks, torchrun, wait_until

from common import data
from common.errors import BadInput

REFUSED = {
    "--image-size 60": "--image-size: conv takes",
    "--steps 1{rank}": "the processes have different options or images; start all with the same command",
}


def command_of_rank(arguments):
    call("gan_detach", *arguments.format(rank=os.environ["RANK"]).split())


@pytest.mark.parametrize(("arguments", "told"), REFUSED.items())
def test_bad_input_is_told_once_and_ends_all_processes(arguments, told, tmp_path):
    arguments += f" --runs-dir {tmp_path / 'runs'}"
    assert ended(start_ranks(3, tmp_path, command_of_rank, arguments)) == [2, 2, 2]
    (line,) = "".join(logs(tmp_path, 3)).splitlines()
    assert line.startswith(f"error: {told}")
    assert not (tmp_path / "runs").exists()


def test_what_one_process_alone_meets_is_told_and_ends_the_others(tmp_path):
    (tmp_path / "file").touch()
    processes = start_ranks(2, tmp_path, call, "gan_detach", "--model", "mlp", "--runs-dir", tmp_path / "file")
    assert ended(processes) == [2, 1]
    first, other = logs(tmp_path, 2)
    assert first.startswith(f"error: --runs-dir: {tmp_path / 'file'}")
    assert other.startswith("error: another process of this run has ended, so this one ends too (")
    assert first.count("\n") == other.count("\n") == 1


ENDLESS = ["--model=mlp", "--steps=1000000", "--log-every=5", "--sample-every=5", "--checkpoint-every=5"]


def running(folder, step=15):
    """Wait until the run in `folder` has shown its samples of `step`."""
    wait_until(lambda: list(folder.glob(f"*/*/samples/step-{step:06d}.png")))


def test_a_signal_to_one_process_ends_all_at_the_same_step(tmp_path):
    processes = start_ranks(2, tmp_path, call, "gan_detach", *ENDLESS, "--runs-dir", tmp_path / "runs")
    running(tmp_path / "runs")
    os.kill(processes[1].pid, signal.SIGTERM)
    assert ended(processes) == [128 + signal.SIGTERM] * 2
    step = int(re.search(r"Interrupted after step (\d+)\.", logs(tmp_path, 2)[0]).group(1))
    assert saved(tmp_path / "runs")["step"] == step
    assert step % 5 == 0


def test_an_image_that_goes_bad_in_one_process_ends_all_and_is_named(tmp_path):
    arguments = [*ENDLESS, "--runs-dir", tmp_path / "runs"]
    assert ended(start_ranks(2, tmp_path, meet_a_bad_image_in_step_8, arguments)) == [1, 1]
    lines = [[line for line in log.splitlines() if line.startswith("error: ")] for log in logs(tmp_path, 2)]
    assert lines[1] == ["error: step 8: 7.png cannot be read"]
    assert len(lines[0]) == 1
    assert saved(tmp_path / "runs")["step"] == 5


def meet_a_bad_image_in_step_8(arguments):
    to_float, steps = data.to_float, itertools.count(1)

    def bad(images):
        if next(steps) == 9 and os.environ["RANK"] == "1":  # the first ones are shown as real images
            raise BadInput("7.png cannot be read")
        return to_float(images)

    data.to_float = bad
    call("gan_detach", *arguments)


def test_a_process_that_dies_ends_the_others_with_a_message(tmp_path):
    processes = start_ranks(3, tmp_path, call, "gan_detach", *ENDLESS, "--runs-dir", tmp_path / "runs")
    running(tmp_path / "runs")
    processes[1].kill()
    assert ended(processes) == [1, -signal.SIGKILL, 1]
    told = "".join(logs(tmp_path, 3))
    assert told.count("error: another process of this run has ended, so this one ends too (") == 2
    assert "Traceback" not in told
    assert saved(tmp_path / "runs")["step"] % 5 == 0


@pytest.mark.torchrun
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_torchrun_ends_the_run_with_its_checkpoint_written(number, tmp_path):
    arguments = torchrun(path_of("gan_detach"), *ENDLESS, "--runs-dir", tmp_path)
    with program(*arguments) as process:
        running(tmp_path)
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE)
    step = int(re.search(r"Interrupted after step (\d+)\.", output).group(1))
    assert saved(tmp_path)["step"] == step
