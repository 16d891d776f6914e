"""Images that do not fit in memory: workers read them from their files, a few batches ahead of the training."""

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

from common.run.command_line import BadInput, Stopped

MAX_WORKERS = 4
BATCHES_AHEAD = 2  # of each worker; with the batch size and the image size, all that the memory depends on


class StreamedImages:
    """Images left in their files; stands where the scripts have them as a uint8 tensor (N, C, H, W)."""

    def __init__(self, paths: list[str], shape: tuple[int, int, int], read: Callable[[str], Tensor]):
        """Keep what it takes to read the images; none is read yet.

        shape: (C, H, W) of every image. read: makes a path such an image, uint8, or raises BadInput. Workers get a
        copy of `read` by pickling where processes are not forked.
        """
        self.paths, self.read = paths, read
        self.shape = torch.Size([len(paths), *shape])
        self.device = torch.device("cpu")

    def __len__(self) -> int:
        """Return N."""
        return len(self.paths)

    def to(self, device: torch.device) -> "StreamedImages":
        """Have the batches come on `device`; returns itself."""
        self.device = device
        return self

    def batches(self, order: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield the images that each tensor of indices in `order` names: uint8 (len(indices), C, H, W) on the device.

        order: one batch or more, or without end. The workers end when the generator is closed or dropped; they draw
        nothing from torch's global generator. Raises BadInput for a file that cannot be read when its batch is due,
        Stopped where a worker has been killed.
        """
        paths = ([self.paths[index] for index in indices.tolist()] for indices in order)
        reader = BatchReader(self.read)

        yield self.arrived(reader[next(paths)])  # read here: who takes one batch, for a picture, starts no workers

        # Without batch_size every item of the sampler is a whole batch; all of them are one epoch, as a rule endless.
        loader = DataLoader(
            reader,
            batch_size=None,
            sampler=paths,
            num_workers=worker_count(),
            prefetch_factor=BATCHES_AHEAD,
            pin_memory=self.device.type == "cuda",
            worker_init_fn=leave_signals_to_the_run,
            generator=torch.Generator(),  # of the workers' seeds, which would come from the global one
        )
        others = active_children()
        with without_torchs_handler():
            arriving = iter(loader)
        workers = [process for process in active_children() if process not in others]
        try:
            while (batch := received(arriving, workers)) is not None:
                yield self.arrived(batch)
        finally:
            del arriving  # which a traceback would keep, and with it the workers

    def arrived(self, batch: Tensor | BadInput | Stopped) -> Tensor:
        """Return the batch on the device, or raise the error that stands for it."""
        if isinstance(batch, Exception):
            raise batch
        return batch.to(self.device, non_blocking=True)


@dataclass(frozen=True)
class BatchReader:
    """What a worker has: `read`, but not the paths, so that its memory does not grow with their number."""

    read: Callable[[str], Tensor]

    def __getitem__(self, paths: list[str]) -> Tensor | BadInput:
        """Return the images, uint8 (len(paths), C, H, W), or the BadInput of one that cannot be read.

        It is returned because the DataLoader would wrap one that is raised into a traceback of many lines.
        """
        try:
            return torch.stack([self.read(path) for path in paths])
        except BadInput as error:
            return error


def worker_count() -> int:
    """Return how many workers to start: this process's part of the cores it may use, from 1 to MAX_WORKERS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # that torchrun has started on this machine
    return max(1, min(MAX_WORKERS, cores // processes))


@contextmanager
def without_torchs_handler() -> Iterator[None]:
    """Keep the block from setting the DataLoader's handler of SIGCHLD.

    It raises the end of a worker wherever the process is, in the middle of a step, too. Without it, the loader notices
    within five seconds when it waits for that worker's batch.
    """
    if not hasattr(signal, "SIGCHLD") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    yield
    signal.signal(signal.SIGCHLD, before)


def received(arriving: Iterator[Tensor | BadInput], workers: list[BaseProcess]) -> Tensor | BadInput | Stopped | None:
    """Return what the workers have sent, the error that stands for it where one of them is dead, or None at the end."""
    try:
        return next(arriving, None)
    except RuntimeError:
        codes = [worker.exitcode for worker in workers if worker.exitcode]
        if not codes:
            raise
        how = signal.Signals(-codes[0]).name if codes[0] < 0 else f"exit status {codes[0]}"
        if codes[0] == -signal.SIGKILL:
            how += ", as the system sends it where memory is short"
        return Stopped(f"a process that reads images has ended ({how})")


def leave_signals_to_the_run(worker: int) -> None:
    """Keep a worker clear of Ctrl-C and of a SIGTERM to the process group: the run ends itself, and then its workers.

    A worker that a signal ended would take the run with it, in the middle of a step.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):  # not on Windows, which sends no signals to groups
        os.setpgrp()
