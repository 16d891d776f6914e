"""Which lines run: those of the user, of a library that the user called, of PyTorch and of this package."""

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import torch
from torch.autograd.function import FunctionCtx

from gradient_audit.places import Place

PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
OF_TORCH = (PACKAGE, f"{torch.__path__[0]}{os.sep}", "<frozen", "<eval_with_key")
PYTHON = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
INSTALLED = ("site-packages", "dist-packages")  # folders
OVERRIDES = ("__torch_function__", "__torch_dispatch__")
Line = tuple[CodeType, int, int]  # code, instruction and line of a frame
Lines = tuple[Line, ...]  # innermost first


def frames() -> Iterator[FrameType]:
    """Yield the frames that run, innermost first, without those of classes that only pass operations on."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name not in OVERRIDES:
            yield frame
        frame = frame.f_back


def runs_inside(*parts: str) -> bool:
    """Return whether a function runs that is in a file with one of these parts in its path."""
    return any(part in frame.f_code.co_filename for frame in frames() for part in parts)


def runs_in_function() -> bool:
    """Return whether an `autograd.Function` of the user's or a library's runs."""
    return any(isinstance(next(iter(frame.f_locals.values()), None), FunctionCtx) for frame in written_frames())


def written_frames() -> Iterator[FrameType]:
    """Yield the frames of code that the user or a library's authors wrote, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:  # at each operation: no generator around `frames`, which takes longer
        code = frame.f_code
        if package_of(code.co_filename) is not None and code.co_name not in OVERRIDES and _is_written(frame):
            yield frame
        frame = frame.f_back


def current_lines() -> Lines:
    """Return where the user's code and that of libraries is."""
    return tuple(map(_line_of, written_frames()))


def inner_lines() -> Lines:
    """Return the innermost line of the user's code, after those of the libraries that it called."""
    lines = []
    for frame in written_frames():
        lines.append(_line_of(frame))
        if not package_of(frame.f_code.co_filename):
            break
    return tuple(lines) or (_line_of([*frames()][-1]),)


def current_place() -> Place:
    """Return the innermost line of the user's code, with those of the library that it called."""
    return place_at(inner_lines(), line_place)


def construction_place(thing: object) -> Place:
    """Return the line of the user that constructs an object. To be called from inside of its constructor."""
    outside = []  # of the constructor: the frames since the last `__init__` of the object
    for frame in frames():
        outside.append(frame)
        code = frame.f_code
        if code.co_name == "__init__" and thing is frame.f_locals.get(next(iter(code.co_varnames), "")):
            outside.clear()
    lines = [_line_of(frame) for frame in outside if package_of(frame.f_code.co_filename) is not None]
    return place_at(lines or [_line_of(outside[-1])], line_place)


def _line_of(frame: FrameType) -> Line:
    return frame.f_code, frame.f_lasti, frame.f_lineno or 0


def is_users(line: Line) -> bool:
    """Whether a line is the user's."""
    return package_of(line[0].co_filename) == ""


def up_to_user(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines up to the innermost of the user's; all, if there is none."""
    return lines[: next((index for index, line in enumerate(lines, 1) if is_users(line)), len(lines))]


def packages_of(lines: Lines) -> frozenset[str]:
    """Return the packages of the innermost line of the user's, and of what was called there: "" is the user's own."""
    return frozenset(package_of(code.co_filename) for code, *_ in up_to_user(lines))


def from_own(lines: Lines, packages: Set[str]) -> Lines:
    """Return the lines from the innermost on that is in these packages."""
    own = (index for index, (code, *_) in enumerate(lines) if package_of(code.co_filename) in packages)
    return lines[next(own, len(lines)) :]


def line_place(code: CodeType, _: int, number: int) -> Place:
    """Return the place of a whole line."""
    return Place(code.co_filename, number, code.co_name, None, None, _source_of(code.co_filename, number, None))


@lru_cache(maxsize=4096)
def expression_place(code: CodeType, instruction: int, line: int) -> Place:
    """Return the place of an instruction: an expression from Python 3.11 on, a line before."""
    columns = None
    if hasattr(code, "co_positions"):
        first, last, begin, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        if None not in (first, last, begin, end):
            line, columns = first, (last, begin, end)
    return Place(code.co_filename, line, code.co_name, None, columns, _source_of(code.co_filename, line, columns))


def place_at(lines: Sequence[Line], place_of: Callable[..., Place] = expression_place) -> Place:
    """Return the innermost expression of the user's, or line, by way of those of the library that it called."""
    place = None
    for line in up_to_user(lines):
        outer = place_of(*line)
        place = outer._replace(via=place) if place else outer
    return place


def meeting(lines: Lines, caller: Lines) -> Place:
    """Return the innermost line of the user's; of a function that `caller` is in, too, the line that led there.

    That is by way of the innermost one then. Lines of libraries count that the caller goes through, if there is one.
    """
    lines = from_own(lines, packages_of(caller)) if caller else lines
    depths = {id(code): depth for depth, (code, *_) in reversed([*enumerate(lines)])}
    depth = next((depths[id(code)] for code, *_ in caller if id(code) in depths), 0)
    users = [line for line in lines[: depth + 1] if is_users(line)]
    if len(users) < 2:
        return place_at(lines)
    return expression_place(*users[-1])._replace(via=expression_place(*users[0]))


def callers_at(lines: Lines) -> tuple[Place, ...]:
    """Return the frames as plain data: of a library's, the line that it has and that of the user that led there.

    Before Python 3.11 the instruction, in place of columns, tells apart two calls on a line.
    """
    callers, outer = [], None
    for line in reversed(lines):
        place = expression_place(*line)
        place = place if place.columns else place._replace(columns=(place.number, line[1], line[1]))
        outer = place if is_users(line) or outer is None else outer
        callers.append(place if place is outer else outer._replace(via=place))
    return tuple(reversed(callers))


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
def package_of(file: str) -> str | None:
    """Return the package that a file is of: "" for the user's own, None for PyTorch, Python and the audit."""
    if file.startswith(OF_TORCH):
        return None
    parts = Path(file).parts
    for folder in INSTALLED:
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1]
    return None if file.startswith(PYTHON) else ""


def _is_written(frame: FrameType) -> bool:
    """Whether code is in a file, or was typed in: what `exec` makes for a decorator is nobody's."""
    is_file = not frame.f_code.co_filename.startswith("<")
    return is_file or (frame.f_globals.get("__name__") == "__main__" and "__file__" not in frame.f_globals)
