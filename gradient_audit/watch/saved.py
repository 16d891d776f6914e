"""Saved tensors: what a node of a graph keeps for its backward pass, and whether that was changed or freed."""

import re
from collections.abc import Iterator
from contextlib import suppress

from torch import Tensor

IN_PLACE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)
SECOND_TIME = "backward through the graph a second time"


def saved_values(node) -> Iterator[tuple[str, object]]:
    """Yield the attributes of a node that are saved tensors, each with its value, or with the error that it raises."""
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                yield name, getattr(node, name, None)
            except Exception as error:  # also what a hook of the user's on saved tensors raises
                yield name, error


def saved_errors(node) -> list[tuple[str, Exception]]:
    """Return the attributes of a node that would be saved tensors, and raise, each with its error."""
    return [(name, value) for name, value in saved_values(node) if isinstance(value, Exception)]


def changed_saved_tensors(node, message: str) -> Iterator[Tensor]:
    """Yield the tensors that a node has saved and that give this very error "modified by an inplace operation"."""
    for name, error in saved_errors(node):
        if not (text := str(error).split(" Hint:")[0]) or text not in message:
            continue
        raw = getattr(node, f"_raw_{name.lstrip('_')}")
        for saved in raw if isinstance(raw, tuple | list) else [raw]:
            unpacked: list[Tensor] = []

            def refuse(_: object, error=error) -> None:
                raise error  # for whoever calls backward() on this graph again

            with suppress(RuntimeError):  # freed already, or saved by other hooks
                saved.register_hooks(unpacked.append, refuse)
            yield from unpacked
