"""The values of options: what their annotations allow, and how a checkpoint keeps them.

An option's annotation says its type and, with `Range`, which numbers it takes: `Annotated[float, Range(above=0)]`.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
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
        """Raise ValueError for a number outside; anything but a number or a sequence of numbers passes."""
        if isinstance(value, list | tuple):
            for item in value:
                self.check(item)
        elif isinstance(value, int | float) and not (
            self.least <= value <= self.most and self.above < value < self.below
        ):
            bounds = {"at least": self.least, "more than": self.above, "at most": self.most, "below": self.below}
            told = [f"{name} {bound}" for name, bound in bounds.items() if not math.isinf(bound)]
            raise ValueError(f"must be {' and '.join(told)}")


Count = Annotated[int, Range(least=1, most=10**9)]


def check_numbers(options: object) -> None:
    """Raise BadInput for a number in the dataclass `options` that is not finite or not in the range of its option."""
    restored(type(options), {name: getattr(options, name) for name in hints_of(type(options))})


def kept(options: object) -> dict[str, Any]:
    """Return the dataclass `options` as a checkpoint keeps them, by name: numbers, text, None, lists and dicts.

    Paths become absolute, so that they mean the same from every folder. Raises BadInput for an option that could not be
    restored.
    """
    values = {}
    for name, hint in hints_of(type(options)).items():
        value = getattr(options, name)
        try:
            values[name] = plain(value)
            fitted(values[name], hint)
        except ValueError as error:
            raise BadInput(f"{flag(name)} {as_typed(value)}: no checkpoint can keep this option: {error}") from error
    return values


def restored(kind: type[Options], values: dict[str, Any]) -> Options:
    """Return options of the dataclass `kind`, given what `kept` made of them; nothing goes through a command line.

    An option that `values` lacks gets its default. Raises BadInput, naming the option, where a value is not of its type
    or out of its range, where `kind` has no such option, or no default for one that is lacking.
    """
    hints, given = hints_of(kind), {}
    for name, value in values.items():
        if name not in hints:
            raise BadInput(f"{flag(str(name))} {as_typed(value)}: there is no such option")
        try:
            given[name] = fitted(value, hints[name])
        except ValueError as error:
            raise BadInput(f"{flag(name)} {as_typed(value)}: {error}") from error
    for field in fields(kind):
        if field.init and field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise BadInput(f"{flag(field.name)}: has no value, and no default")
    return kind(**given)


def fitted(value: Any, hint: Any) -> Any:
    """Return `value`, an option's own or what a checkpoint keeps of it, as the annotation `hint` has it.

    Lists become tuples, text becomes paths. Raises ValueError, saying what the value must be, where it does not fit.
    """
    hint = getattr(hint, "__supertype__", getattr(hint, "__value__", hint))  # of NewType, and of a `type` statement
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
        for choice in arguments:
            if value == choice and type(value) is type(choice):
                return choice
        raise ValueError(f"must be one of {', '.join(map(str, arguments))}")
    if origin in (tuple, list, set, frozenset, Sequence) and isinstance(value, list | tuple | set | frozenset):
        if origin is tuple and arguments[-1:] != (...,):
            if len(value) != len(arguments):
                raise ValueError(f"must be {len(arguments)} values")
            return tuple(map(fitted, value, arguments))
        return (tuple if origin is Sequence else origin)(fitted(item, arguments[0]) for item in value)
    if origin is dict and isinstance(value, dict):
        return {fitted(name, arguments[0]): fitted(item, arguments[1]) for name, item in value.items()}
    if hint is Any:
        return value
    if origin is None and isinstance(hint, type):
        return instance(value, hint)
    raise ValueError(f"must be of the type {hint}")


def instance(value: Any, kind: type) -> Any:
    """Return `value` as an instance of the class `kind`; raises ValueError where it is none and stands for none."""
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value
    if kind is float and type(value) is int:
        return float(value)
    if (issubclass(kind, Path) and isinstance(value, str)) or (kind in (tuple, set) and isinstance(value, list)):
        return kind(value)
    if issubclass(kind, Enum) and isinstance(value, str) and value in kind.__members__:
        return kind[value]
    if is_dataclass(kind) and isinstance(value, dict):
        return restored(kind, value)
    raise ValueError(f"must be of the type {kind.__name__}")


def plain(value: Any) -> Any:
    """Return a value as JSON has it; raises ValueError for one of another kind."""
    if isinstance(value, Enum):
        return value.name
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Path):
        return os.path.abspath(value)  # noqa: PTH100 (Path.resolve follows links)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(name): plain(item) for name, item in value.items()}
    if is_dataclass(value):
        return kept(value)
    raise ValueError(f"it is of the type {type(value).__name__}")


def hints_of(kind: type) -> dict[str, Any]:
    """Return the annotations, with what `Annotated` adds, of a dataclass's fields that its constructor takes."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def flag(name: str) -> str:
    """Return an option's name as one writes it on the command line."""
    return f"--{name.replace('_', '-')}"


def as_typed(value: object) -> str:
    """Return an option's value as one writes it on the command line."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
