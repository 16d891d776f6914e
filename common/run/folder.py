"""The files of a run: its folder, the lock on it, and files that are written completely or not at all."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from common.errors import BadInput

LOCK = ".lock"  # removed at the end of the run; a killed process leaves the file, but no lock on it


def make_run_folder(parent: Path) -> Path:
    """Make and return a folder named after the time, with a number appended if that folder exists."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        parent.mkdir(parents=True, exist_ok=True)  # not in the loop: for a broken link it raises FileExistsError, too
        for number in count(1):
            folder = parent / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise BadInput(f"--runs-dir: {parent} cannot be written ({error.strerror}); choose another") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run's folder for the block; the lock ends with this process, also when it is killed.

    Raises BadInput if another process holds the lock. Where the file system has none, the block runs without it.
    """
    lock = FileLock(folder / LOCK, blocking=False, fallback_to_soft=False)  # a soft lock outlives a killed process
    try:
        lock.acquire()
    except Timeout as error:
        message = "another process is training this run; wait for it, or end it first"
        raise BadInput(f"{short_path(folder)}: {message}") from error
    except OSError:
        pass
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # Windows does not remove an open file
                (folder / LOCK).unlink()
            lock.release()


def check_new_file(path: Path, *suffixes: str) -> None:
    """Raise BadInput, for the option --output, if `path` exists, cannot be made or has none of `suffixes`."""
    if path.suffix not in suffixes:
        raise BadInput(f"--output {path}: must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise BadInput(f"--output {path}: there is no folder {path.parent}; make it first")
    if os.path.lexists(path):
        raise BadInput(f"--output {path}: exists already; name a new file")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` on a temporary file and rename it to `path`, never a partial file; raises OSError with its name."""
    temporary = path.with_name(f".{path.name}.unfinished")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else error.__context__  # as torch.save raises it
        if not isinstance(cause, OSError):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def short_path(path: Path) -> Path:
    """Return `path` relative to the current folder if it is inside it, else absolute."""
    path, here = path.resolve(), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
