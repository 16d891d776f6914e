"""Lines of code, as plain data."""

from pathlib import Path
from typing import NamedTuple

CONTEXT = 3  # lines of source above and below a line that is shown


class Place(NamedTuple):
    """A line of the user's code, or, with `columns`, an expression on it."""

    file: str
    number: int
    function: str
    via: str = ""  # the library's line that was called from there, as `/path/file.py:12`
    columns: tuple[int, int, int] | None = None  # the last line, and where the expression begins and ends, in bytes
    code: str = ""  # the source of it, without its comment, 60 characters at most

    @property
    def where(self) -> str:
        """The line as `file.py:12`."""
        return f"{Path(self.file).name}:{self.number}"

    def __str__(self) -> str:
        via = f" via {Path(self.via).name}" if self.via else ""
        return f"`{self.where} {self.code}`{via}"


class Caller(NamedTuple):
    """A frame of the user's that runs: its place, and the instruction, which tells apart two calls on a line."""

    place: Place
    instruction: int
