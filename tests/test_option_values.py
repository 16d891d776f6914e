"""What an option's annotation lets through, and that it comes back from a checkpoint as it was."""

import json
import math
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import torch

from common.run.command_line import BadInput
from common.run.option_values import Count, Range, check_numbers, kept, restored


def options(hint, *value):
    """Return a dataclass with the one field `x` of this annotation, made with the value if there is one."""
    kind = make_dataclass("Options", [("x", hint)])
    return kind(*value) if value else kind


ROUND_TRIPS = [
    (bool, False),
    (int, 0),
    (float, -1.5),
    (str, ""),
    (Path, Path("/a/b")),
    (Path | None, None),
    (Literal["a", 1], 1),
    (tuple[float, float], (0.5, 1.0)),
    (tuple[str, ...], ("a", "b")),
    (tuple[str, ...], ()),
    (tuple[Path, ...] | None, (Path("/a"),)),
    (tuple[Literal["a", "b"], int | None], ("b", None)),
    (tuple[tuple[int, int], ...], ((1, 2), (3, 4))),
    (list[int], [1, 2]),
    (Annotated[int | None, Range(1, 5)], None),
    (Count | None, 10**9),
]


@pytest.mark.parametrize(("hint", "value"), ROUND_TRIPS)
def test_an_option_comes_back_as_it_was(hint, value):
    plain = json.loads(json.dumps(kept(options(hint, value))))
    back = restored(options(hint), plain)
    assert back.x == value
    assert type(back.x) is type(value)


def test_a_relative_path_is_kept_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kept(options(Path, Path("a"))) == {"x": str(tmp_path / "a")}


REFUSED = [
    (bool, 1, "must be of the type bool"),
    (int, True, "must be of the type int"),
    (int, 1.0, "must be of the type int"),
    (int | None, "1", "must be of the type int"),
    (float, math.nan, "must be a finite number"),
    (float, "fast", "must be of the type float"),
    (str, None, "must be of the type str"),
    (Path, 3, "must be of the type"),
    (torch.dtype, torch.float32, "no checkpoint can keep an option of the type dtype"),
    (dict[str, int], {"a": 1}, "no checkpoint can keep an option of the type dict"),
    (int | set[str], {"a"}, "must be of the type int"),
    (Literal["a", 1], True, "must be one of a, 1"),
    (tuple[float, float], [1.0], "must be 2 values"),
    (tuple[str, ...], "ab", "must be of the type"),
    (list[int], [1, "a"], "must be of the type int"),
    (tuple[float, float], 0.5, "must be of the type tuple"),
    (Annotated[float, Range(above=0)], 0.0, "must be more than 0"),
    (Annotated[tuple[float, float], Range(0, below=1)], [0.5, 1.0], "must be at least 0 and below 1"),
    (Count | None, 0, "must be at least 1 and at most 1000000000"),
]


@pytest.mark.parametrize(("hint", "value", "told"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_by_name(hint, value, told):
    with pytest.raises(BadInput, match=told) as refusal:
        restored(options(hint), {"x": value})
    assert str(refusal.value).startswith("--")


@pytest.mark.parametrize("value", [0, -3, 10**400, -0.5, (0, -1), None, "text", False])
def test_without_a_range_any_finite_number_is_taken(value):
    check_numbers(options(tuple[int, ...] if isinstance(value, tuple) else type(value), value))
