"""Other processes in tests: started, waited for, and never left behind, also on a machine that is short of time.

`program` and `python` start a command as a user does, which takes seconds to import torch. `fork`, `forked` and
`start_ranks` take processes from a server that has imported what is slow, but nothing of ours, and has no threads.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

ROOT = Path(__file__).resolve().parents[1]
RUN_AUDIT = ROOT / "tests" / "run_audit.py"
PATIENCE = 300  # seconds; what takes one on an idle machine may take a hundred on a starved one

FORKS = multiprocessing.get_context("forkserver")
IMPORTED = """PIL.Image filelock hypothesis numpy pytest torch torch._dynamo torch.distributed torch.utils.tensorboard
    tensorboard.backend.event_processing.event_accumulator torchvision.datasets torchvision.transforms.v2 tqdm tyro"""
FORKS.set_forkserver_preload(IMPORTED.split())


@contextmanager
def program(*command, **options):
    """Start `python *command` with its output captured as text; yield the process, which does not outlive the block."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    with subprocess.Popen([sys.executable, *map(str, command)], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition):
    """Wait until `condition()` is true, which must be within `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} seconds"
        time.sleep(0.05)


def python(*command, folder=None, given=None, **environment):
    """Run `python *command` to its end, in `folder`, with the text `given` on its standard input.

    Returns its `returncode`, `stdout` and `stderr`. environment: variables set beside those of this process.
    """
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=os.environ | environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def forked(script, *arguments, folder=None, **environment):
    """Do what `python(script, *arguments, ...)` does in a forked process."""
    with tempfile.TemporaryDirectory() as scratch:
        output, errors = Path(scratch) / "output", Path(scratch) / "errors"
        process = fork(
            as_main,
            Path(script).resolve(),
            [str(argument) for argument in arguments],
            folder or Path.cwd(),
            output=output,
            errors=errors,
            environment=os.environ | environment,
            daemon=False,  # it may start processes of its own
        )
        (status,) = ended([process])
        return subprocess.CompletedProcess(script, status, output.read_text(), errors.read_text())


def as_main(script, arguments, folder):
    """Run a script in this process as Python would, with nothing of this repository imported or on the path."""
    assert not {"common", "scripts"} & sys.modules.keys()
    os.chdir(folder)
    sys.path[:] = [str(script.parent), *(path for path in sys.path if Path(path) not in (ROOT, ROOT / "tests"))]
    sys.argv = [str(script), *arguments]
    gc.freeze()  # an audit searches all objects that the collector knows, and torch's are some 300,000
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        gc.collect()  # as Python does at its end: an object may complain that it goes


def fork(function, *arguments, output, errors=None, environment=None, daemon=True):
    """Start `function(*arguments)` in a forked process with one thread; return the process.

    output, errors: files to which it appends what it writes; errors go into `output` if not given. environment:
    variables that it sets. daemon: it ends with this process, and cannot start processes of its own.
    """
    arguments = (environment or {}, output, errors or output, function, *arguments)
    process = FORKS.Process(target=as_child, args=arguments, daemon=daemon)
    process.start()
    return process


def as_child(environment, output, errors, function, *arguments):
    os.environ.update(environment)
    for stream, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    torch.set_num_threads(1)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores, for all that it starts
    function(*arguments)


def ended(processes):
    """Return the exit codes; no process may hang."""
    for process in processes:
        process.join(PATIENCE)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    return codes


def start_ranks(count, folder, function, *arguments, daemon=True):
    """Start `function(*arguments)` in `count` processes as torchrun would; return them.

    Each prints into a file of `folder` named by its rank; what an earlier call has left there is replaced. One process
    gets no rank: it runs as without torchrun.
    """
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
    processes = []
    for rank in range(count):
        own = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} if count > 1 else {}
        (folder / str(rank)).unlink(missing_ok=True)
        processes.append(fork(function, *arguments, output=folder / str(rank), environment=own, daemon=daemon))
    processes[0].store = store  # for as long as they live
    return processes


def logs(folder, count):
    """Return what each of `count` ranks has printed."""
    return [(folder / str(rank)).read_text() for rank in range(count)]
