"""Which lines run: those of the user, of a library that the user called, of PyTorch and of this package."""

import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import torch

from gradient_audit.places import Caller, Place

PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
OF_TORCH = (PACKAGE, f"{torch.__path__[0]}{os.sep}", "<frozen", "<eval_with_key")
LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
OVERRIDES = ("__torch_function__", "__torch_dispatch__")
Line = tuple[CodeType, int, int]  # code, instruction and line of a frame


def frames() -> Iterator[FrameType]:
    """Return the frames that run, innermost first, without those of classes that only pass operations on."""
    return (frame for frame, _ in traceback.walk_stack(sys._getframe(1)) if frame.f_code.co_name not in OVERRIDES)


def runs_inside(part: str) -> bool:
    """Return whether a function runs that is in a file with this part in its path."""
    return any(part in frame.f_code.co_filename for frame in frames())


def user_frames() -> Iterator[FrameType]:
    """Return the frames of the user's code, innermost first."""
    return (frame for frame in frames() if _origin(frame.f_code.co_filename) == "user")


def current_frames() -> tuple[FrameType, FrameType | None]:
    """Return the innermost frame of the user's code, and of a library that it called."""
    library = None
    for frame in frames():
        origin = _origin(frame.f_code.co_filename)
        if origin == "user":
            return frame, library
        if origin == "library":
            library = library or frame
    return library or frame, None


def current_place() -> Place:
    """Return the innermost line of the user's code, with the line of the library that it called."""
    frame, library = current_frames()
    via = f"{library.f_code.co_filename}:{library.f_lineno}" if library else ""
    return _place_of(frame, via)


def current_lines() -> tuple[Line, ...]:
    """Return the frames of the user's code, innermost first."""
    return tuple(line_of(frame) for frame in user_frames())


def line_of(frame: FrameType) -> Line:
    """Return what tells of a frame where it is."""
    return frame.f_code, frame.f_lasti, frame.f_lineno or 0


def construction_place(thing: object) -> Place:
    """Return the line of the user that constructs an object. To be called from inside of its constructor."""
    outside = []  # of the constructor: the frames since the last `__init__` of the object
    for frame in frames():
        outside.append(frame)
        if frame.f_code.co_name == "__init__" and thing is frame.f_locals.get("self"):
            outside.clear()
    return _place_of(next((frame for frame in outside if _origin(frame.f_code.co_filename) == "user"), outside[-1]))


def _place_of(frame: FrameType, via: str = "") -> Place:
    file, number = frame.f_code.co_filename, frame.f_lineno or 0
    return Place(file, number, frame.f_code.co_name, via, None, _source_of(file, number, None))


def callers_at(lines: tuple[Line, ...]) -> tuple[Caller, ...]:
    """Return the frames as plain data."""
    return tuple(Caller(expression_place(*line), line[1]) for line in lines)


@lru_cache(maxsize=4096)
def expression_place(code: CodeType, instruction: int, line: int) -> Place:
    """Return the place of an instruction: an expression from Python 3.11 on, a line before."""
    columns = None
    if hasattr(code, "co_positions"):
        first, last, begin, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        if None not in (first, last, begin, end):
            line, columns = first, (last, begin, end)
    return Place(code.co_filename, line, code.co_name, "", columns, _source_of(code.co_filename, line, columns))


@lru_cache(maxsize=4096)
def _source_of(file: str, number: int, columns: tuple[int, int, int] | None) -> str:
    """Return the source of a place, without its comment, 60 characters at most."""
    last, begin, end = columns or (number, None, None)
    lines = [linecache.getline(file, line).encode() for line in range(number, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    text = " ".join(b" ".join(lines).decode(errors="replace").split())
    text = text if columns else re.split(r"\s+#", text)[0]
    return text if len(text) <= 60 else f"{text[:57]}..."


@cache
def _origin(file: str) -> str:
    if file.startswith(OF_TORCH):
        return "torch"
    installed = file.startswith(LIBRARIES) or {"site-packages", "dist-packages"} & {*Path(file).parts}
    return "library" if installed else "user"
