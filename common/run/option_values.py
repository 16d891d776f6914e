"""The values of options: what their annotations allow, and how a checkpoint keeps them.

An option is None, a bool, int, float, str, Path or Literal, one of several of those (`int | None`), or a tuple or list
of them. With `Range` its annotation says which numbers it takes: `Annotated[float, Range(above=0)]`.
"""

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from common.run.command_line import BadInput

Options = TypeVar("Options")


@dataclass(frozen=True)
class Range:
    """The numbers that an option takes, in its annotation; without a range it takes every finite one.

    `least` and `most` are in the range, `above` and `below` are not. It holds for each number of a tuple.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def check(self, value: object) -> None:
        """Raise ValueError for a number outside, also one in a tuple or list; anything else passes."""
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, int | float) and not (
                self.least <= number <= self.most and self.above < number < self.below
            ):
                bounds = {"at least": self.least, "more than": self.above, "at most": self.most, "below": self.below}
                told = [f"{name} {bound}" for name, bound in bounds.items() if not math.isinf(bound)]
                raise ValueError(f"must be {' and '.join(told)}")


Count = Annotated[int, Range(least=1, most=10**9)]


def check_numbers(options: object) -> None:
    """Raise BadInput for a number in the dataclass `options` that is not finite or not in the range of its option."""
    restored(type(options), vars(options))


def kept(options: object) -> dict[str, Any]:
    """Return the dataclass `options` as a checkpoint keeps them, by name: numbers, text, None and lists of those.

    Paths become absolute, so that they mean the same from every folder.
    """
    return {field.name: plain(getattr(options, field.name)) for field in fields(options) if field.init}


def plain(value: Any) -> Any:
    """Return an option's value as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return os.path.abspath(value) if isinstance(value, Path) else value  # noqa: PTH100 (Path.resolve follows links)


def restored(kind: type[Options], values: dict[str, Any]) -> Options:
    """Return options of the dataclass `kind`, given what `kept` made of them; nothing goes through a command line.

    An option that `values` lacks gets its default. Raises BadInput, naming the option, where a value is not of its type
    or out of its range.
    """
    hints, given = get_type_hints(kind, include_extras=True), {}
    for field in fields(kind):
        if field.init and field.name in values:
            value = values[field.name]
            try:
                given[field.name] = fitted(value, hints[field.name])
            except ValueError as error:
                raise BadInput(f"{flag(field.name)} {as_typed(value)}: {error}") from error
    return kind(**given)


def fitted(value: Any, hint: Any) -> Any:
    """Return `value`, an option's own or what a checkpoint keeps of it, as the annotation `hint` has it.

    Raises ValueError, saying what the value must be, where it does not fit.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        value = fitted(value, arguments[0])
        for part in arguments[1:]:
            if isinstance(part, Range):
                part.check(value)
        return value
    if origin in (Union, UnionType):
        errors = []
        for kind in arguments:
            try:
                return fitted(value, kind)
            except ValueError as error:
                errors.append(error)
        raise errors[0]
    if origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
        raise ValueError(f"must be one of {', '.join(map(str, arguments))}")
    if origin in (tuple, list) and isinstance(value, list | tuple):
        kinds = [arguments[0]] * len(value) if origin is list or arguments[-1] is ... else arguments
        if len(kinds) != len(value):
            raise ValueError(f"must be {len(kinds)} values")
        return origin(map(fitted, value, kinds))
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if hint is float and type(value) in (int, float):
        if not math.isfinite(value):
            raise ValueError("must be a finite number")
        return float(value)
    if hint in (bool, int, str, NoneType) and type(value) is hint:
        return value
    name = getattr(hint, "__name__", str(hint))
    if hint not in (bool, int, float, str, Path, NoneType) and origin not in (tuple, list):
        raise ValueError(f"no checkpoint can keep an option of the type {name}; take a str, or see option_values.py")
    raise ValueError(f"must be of the type {name}")


def flag(name: str) -> str:
    """Return an option's name as one writes it on the command line."""
    return f"--{name.replace('_', '-')}"


def as_typed(value: object) -> str:
    """Return an option's value as one writes it on the command line."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
