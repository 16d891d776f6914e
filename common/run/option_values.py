"""The values of options: checked against their annotations, and stored in a checkpoint.

An option is None, a bool, int, float, str, Path or Literal, one of several of those (`int | None`), or a tuple or list
of them. A number's range stands in its annotation, in the words of annotated-types: `Annotated[float, Gt(0), Lt(1)]`.
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Le, Lt
from pydantic import TypeAdapter, ValidationError

from common.errors import BadInput

Options = TypeVar("Options")
Decay = Annotated[float, Ge(0), Lt(1)]
Pixels = Annotated[int, Ge(1), Le(4096)]
Count = Annotated[int, Ge(1), Le(10**9)]
Seed = Annotated[int, Ge(0), Le(2**63 - 1)]


def checked(options: Options) -> Options:
    """Return the dataclass `options` with its values of their types, a Path for the str of one; raises BadInput."""
    return options_from_store(type(options), vars(options))


def options_to_store(options: object) -> dict[str, Any]:
    """Return the dataclass `options` as JSON has it, by name; paths become absolute, so that they hold anywhere."""
    return {field.name: plain(getattr(options, field.name)) for field in fields(options)}


def plain(value: Any) -> Any:
    """Return an option's value as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return os.path.abspath(value) if isinstance(value, Path) else value  # noqa: PTH100 (Path.resolve follows links)


def options_from_store(kind: type[Options], values: dict[str, Any]) -> Options:
    """Return options of the dataclass `kind` from what `options_to_store` returned; those that it lacks get defaults.

    Raises BadInput, naming the option, if a value is not of its type or out of its range.
    """
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0]
        message = "needs a value" if first["type"] == "too_short" else first["msg"].removeprefix("Input ")
        raise BadInput(f"{flag(name)} {as_typed(values.get(name))}".rstrip() + f": {message}") from error


def flag(name: str) -> str:
    """Return an option's name as one writes it on the command line."""
    return f"--{name.replace('_', '-')}"


def as_typed(value: object) -> str:
    """Return an option's value as one writes it on the command line."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
