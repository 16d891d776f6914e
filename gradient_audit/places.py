"""Lines of code, as plain data."""

from pathlib import Path
from typing import NamedTuple

CONTEXT = 3  # lines of source above and below a line that is shown


class Place(NamedTuple):
    """A line of the user's code, or, with `columns`, an expression on it."""

    file: str
    number: int
    function: str
    via: "Place | None" = None  # a line that was called from there, of a library or of another function
    columns: tuple[int, int, int] | None = None  # the last line, and where the expression begins and ends, in bytes
    code: str = ""  # the source of it, without its comment, 60 characters at most

    @property
    def where(self) -> str:
        """The line as `train.py:12`, or as `train.py:12 via trainer.py:34`."""
        via = f" via {self.via.where}" if self.via else ""
        return f"{Path(self.file).name}:{self.number}{via}"

    @property
    def inner(self) -> "Place":
        """The line itself, or the one that was called from there."""
        return self.via or self

    def __str__(self) -> str:
        via = f" via {self.via.where} `{self.via.code}`" if self.via else ""
        return f"`{Path(self.file).name}:{self.number} {self.code}`{via}"
