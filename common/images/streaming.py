"""Images that do not fit in memory: worker processes read them from their files, a few batches ahead."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from common.errors import BadInput, Stopped

MAX_WORKERS = 4
BATCHES_AHEAD = 2  # per worker; memory use depends on this, the batch size and the image size alone


class StreamedImages:
    """Images that stay in their files, with the part of the interface of a uint8 tensor (N, C, H, W) that we use."""

    def __init__(self, paths: list[str], shape: tuple[int, int, int], read: Callable[[str], Tensor]):
        """Store the paths; no image is read yet.

        shape: (C, H, W) of every image. read: returns the image of a path as uint8 of this shape, or raises BadInput.
        It is pickled for the workers where processes are not forked.
        """
        self.paths, self.read = paths, read
        self.shape = torch.Size([len(paths), *shape])
        self.device = torch.device("cpu")

    def __len__(self) -> int:
        """Return N."""
        return len(self.paths)

    def to(self, device: torch.device) -> "StreamedImages":
        """Set the device of the batches; returns itself."""
        self.device = device
        return self

    def batches(self, order: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield the images of each tensor of indices in `order`: uint8 (len(indices), C, H, W) on the device.

        order: at least one batch; it may be endless. The workers end when the generator is closed or deleted. They draw
        no numbers from torch's global generator. Raises BadInput for a file that cannot be read, at the step of its
        batch, and Stopped if a worker has been killed.
        """
        paths = ([self.paths[index] for index in indices.tolist()] for indices in order)
        reader = BatchReader(self.read)

        yield self.arrived(reader[next(paths)])  # read in this process: a single batch, for a picture, needs no workers

        # With batch_size=None an item of the sampler is a whole batch.
        loader = DataLoader(
            reader,
            batch_size=None,
            sampler=paths,
            num_workers=worker_count(),
            prefetch_factor=BATCHES_AHEAD,
            pin_memory=self.device.type == "cuda",
            worker_init_fn=leave_signals_to_the_run,
            generator=torch.Generator(),  # else the workers' seeds are drawn from the global generator
        )
        others = active_children()
        with without_torchs_handler():
            arriving = iter(loader)
        workers = [process for process in active_children() if process not in others]
        try:
            while (batch := received(arriving, workers)) is not None:
                yield self.arrived(batch)
        finally:
            del arriving  # a traceback would keep it, and the workers would not end

    def arrived(self, batch: Tensor | BadInput | Stopped) -> Tensor:
        """Return the batch on the device, or raise it if it is an error."""
        if isinstance(batch, Exception):
            raise batch
        return batch.to(self.device, non_blocking=True)


@dataclass(frozen=True)
class BatchReader:
    """The data set of a worker: it has `read`, but not the paths, so its memory does not grow with their number."""

    read: Callable[[str], Tensor]

    def __getitem__(self, paths: list[str]) -> Tensor | BadInput:
        """Return the images, uint8 (len(paths), C, H, W), or the BadInput of one that cannot be read.

        The error is returned, not raised: the DataLoader would wrap it into a traceback of many lines.
        """
        try:
            return torch.stack([self.read(path) for path in paths])
        except BadInput as error:
            return error


def worker_count() -> int:
    """Return the number of workers: the cores divided by the local processes, from 1 to MAX_WORKERS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # started by torchrun on this machine
    return max(1, min(MAX_WORKERS, cores // processes))


@contextmanager
def without_torchs_handler() -> Iterator[None]:
    """Undo the DataLoader's handler of SIGCHLD, which the block sets.

    When a worker ends, that handler raises an error wherever the process is, also in the middle of a step. Without it,
    the loader notices within five seconds while it waits for that worker's batch.
    """
    if not hasattr(signal, "SIGCHLD") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    yield
    signal.signal(signal.SIGCHLD, before)


def received(arriving: Iterator[Tensor | BadInput], workers: list[BaseProcess]) -> Tensor | BadInput | Stopped | None:
    """Return the next batch or error from the workers, Stopped if one of them is dead, or None at the end."""
    try:
        return next(arriving, None)
    except RuntimeError:
        codes = [worker.exitcode for worker in workers if worker.exitcode]
        if not codes:
            raise
        how = signal.Signals(-codes[0]).name if codes[0] < 0 else f"exit status {codes[0]}"
        if codes[0] == -signal.SIGKILL:
            how += ", which the system sends when memory runs out"
        return Stopped(f"a process that reads images has ended ({how})")


def leave_signals_to_the_run(worker: int) -> None:
    """Make a worker ignore Ctrl-C, and leave the process group that SIGTERM may be sent to.

    The run handles these signals after the current step, and then ends its workers. A worker ended by a signal would
    stop the run in the middle of a step.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):  # not on Windows, which sends no signals to groups
        os.setpgrp()
