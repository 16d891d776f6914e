"""The lines that a run prints, and the ways it ends early, each with one line: an error, or a signal."""

import errno
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class BadInput(Exception):
    """The input cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """A run has started but cannot continue. The message is one line: what happened, and what has been saved."""


@contextmanager
def as_bad_input(subject: object, kind: type | tuple) -> Iterator[None]:
    """Raise an error of the block, of a type in `kind`, as BadInput that names `subject`, an option or a file.

    A subject that is a function is called after the error.
    """
    try:
        yield
    except BadInput:
        raise
    except kind as error:
        cause = f"it lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        # Before and after, torch advises to trust the file.
        cause = cause.rpartition("WeightsUnpickler error: ")[2].partition(" Please use `torch")[0]
        cause = cause[:500] or type(error).__name__  # torch lists all its backends in some
        raise BadInput(f"{subject() if callable(subject) else subject}: {cause}") from error


@contextmanager
def as_stopped(path: object) -> Iterator[None]:
    """Raise an OSError of the block, which writes to `path`, as Stopped that names it."""
    try:
        yield
    except OSError as error:
        raise Stopped(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def error_in_a_line() -> Iterator[None]:
    """End the process with one line on stderr, and status 2 for `BadInput`, 1 for `Stopped`; and after Ctrl-C."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold what is no text, or no letter of a console
    try:
        yield
    except (BadInput, Stopped) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadInput) else 1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def one_line(message: str) -> str:
    """Return the message as one line: names in it may hold line breaks and bytes that are not text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)


def counted(count: float, noun: str) -> str:
    """Return a number and what it counts, in the plural unless it is 1."""
    return f"{count:.10g} {noun if count == 1 else noun + 's'}"


def show(change: Callable, *arguments: object, stream: str = "stderr") -> None:
    """Print, or change the progress bar; a stream that is closed, both of a terminal, is written to no more."""
    try:
        change(*arguments)
    except OSError as error:
        if error.errno == errno.ENOSPC and stream == "stdout" and sys.stderr:
            print(f"note: stdout cannot be written: {error.strerror}", file=sys.stderr)
        closed, streams = getattr(sys, stream).fileno(), [each.fileno() for each in (sys.stdout, sys.stderr) if each]
        for number in [number for number in streams if os.path.sameopenfile(number, closed)]:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def show_lines(*lines: str) -> None:
    """Print lines, at once."""
    show(partial(print, *lines, sep="\n", flush=True), stream="stdout")


def show_end(script: Path, folder: Path, step: int, steps: int, processes: int) -> None:
    """Print where the results of a run are, and how so many processes continue from its checkpoint, of `step`."""
    lines = ["Interrupted before the first checkpoint."]
    if step >= steps:
        lines = [f"Done: {counted(step, 'step')}. What the curves show: docs/curves.md"]
        tools = "scripts/tools"
        if not (Path(tools).exists() and Path(tools).samefile(ROOT / tools)):  # the current folder may be gone
            tools = str(ROOT / tools)
        sample = shlex.join([f"{tools}/sample.py", str(folder)])
        lines += [f"More images: python {sample} (CycleGAN: translate.py); {tools}/evaluate.py measures them"]
    elif step:
        python = "python" if processes == 1 else f"torchrun --standalone --nproc-per-node={processes}"
        if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
            python = "on each machine, torchrun with its options, then"
        command = shlex.join([str(script), "--resume", str(folder)])
        lines = [f"Interrupted after step {step}."]
        lines += [f"Continue:    {python} {command}"] if script.is_absolute() or script.is_file() else []
    picture = folder / "samples" / f"step-{step:06d}.png"
    if picture.exists():
        lines.append(f"Samples:     {picture}")
    show_lines(*lines, f"TensorBoard: tensorboard --logdir {shlex.quote(str(folder.parent))}")


@contextmanager
def note_signals(until: ExitStack, saved_step: Callable[[], int]) -> Iterator[list[int]]:
    """Give a list that gets the first SIGINT, SIGTERM or SIGHUP of the block; a second one acts as usual.

    A handler of the script's own stays. until: what ends the block, too, where a generator that holds it lives on.
    saved_step: returns the step after which a second signal loses what came.
    """
    received: list[int] = []
    handlers, process = {}, os.getpid()
    if threading.current_thread() is threading.main_thread():  # which alone gets signals
        numbers = [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)]  # Windows has no SIGHUP
        handlers = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _frame: object) -> None:
        received.append(number)
        signal.signal(number, handlers[number])
        line = f"\nSaves after this step; again to stop at once, without what came after step {saved_step()}.\n"
        with suppress(OSError):  # a terminal that is closed
            if os.getpid() == process:
                os.write(2, line.encode())  # print() may be what was interrupted
            elif number != signal.SIGINT:  # which a terminal sends to all; a worker of a loader is still needed
                os.kill(os.getpid(), number)  # as Process.terminate() does

    def restore() -> None:
        for number, handler in handlers.items():
            if signal.getsignal(number) is note:
                signal.signal(number, handler)

    until.callback(restore)
    try:
        for number, handler in handlers.items():
            is_ours = getattr(handler, "__qualname__", "") == note.__qualname__  # of a run around this one
            if is_ours or handler in (signal.SIG_DFL, signal.default_int_handler):  # SIG_IGN: as nohup ignores SIGHUP
                signal.signal(number, note)
        yield received
    finally:
        restore()
