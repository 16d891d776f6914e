"""What an option's annotation lets through, and that it comes back from a checkpoint as it was."""

import json
import math
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt

from common.errors import BadInput
from common.run.option_values import Count, options_from_store, options_to_store


def options(hint, *value):
    """Return a dataclass with the one field `x` of this annotation, made with the value if there is one."""
    kind = make_dataclass("Options", [("x", hint)])
    return kind(*value) if value else kind


ROUND_TRIPS = [
    (bool, False),
    (int, 0),
    (float, -1.5),
    (str, ""),
    (str, "a\udcff"),  # a file name that is not UTF-8
    (Path, Path("/a/b")),
    (Path | None, Path("/a\udcff")),
    (Path | None, None),
    (Literal["a", 1], 1),
    (tuple[float, float], (0.5, 1.0)),
    (tuple[str, ...], ("a", "b")),
    (tuple[str, ...], ()),
    (tuple[Path, ...] | None, (Path("/a"),)),
    (tuple[Literal["a", "b"], int | None], ("b", None)),
    (tuple[tuple[int, int], ...], ((1, 2), (3, 4))),
    (list[int], [1, 2]),
    (dict[str, int], {"a": 1}),
    (Annotated[int, Ge(1), Le(5)] | None, None),
    (Count | None, 10**9),
]


@pytest.mark.parametrize(("hint", "value"), ROUND_TRIPS)
def test_an_option_comes_back_as_it_was(hint, value):
    plain = json.loads(json.dumps(options_to_store(options(hint, value))))
    back = options_from_store(options(hint), plain)
    assert back.x == value
    assert type(back.x) is type(value)


def test_a_relative_path_is_kept_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert options_to_store(options(Path, Path("a"))) == {"x": str(tmp_path / "a")}


CONVERTED = [(bool, 1, True), (int, True, 1), (int, 2.0, 2), (float, 2, 2.0), (int | None, "1", 1)]


@pytest.mark.parametrize(("hint", "value", "expected"), CONVERTED)
def test_a_value_of_another_type_becomes_one_of_its_own_where_nothing_is_lost(hint, value, expected):
    back = options_from_store(options(hint), {"x": value}).x
    assert back == expected
    assert type(back) is type(expected)


REFUSED = [
    (int, 1.5, "should be a valid integer"),
    (int, "many", "should be a valid integer"),
    (bool, 2, "should be a valid boolean"),
    (Annotated[float, Gt(0)], math.nan, "should be greater than 0"),
    (float, "fast", "should be a valid number"),
    (str, None, "should be a valid string"),
    (Path, 3, "is not a valid path for"),
    (Literal["a", 1], "b", "should be 'a' or 1"),
    (tuple[float, float], [1.0], "Field required"),
    (tuple[str, ...], "ab", "should be a valid tuple"),
    (list[int], [1, "a"], "should be a valid integer"),
    (tuple[float, float], 0.5, "should be a valid tuple"),
    (Annotated[float, Gt(0)], 0.0, "should be greater than 0"),
    (tuple[Annotated[float, Ge(0), Lt(1)], float], [1.0, 0.5], "should be less than 1"),
    (Count | None, 0, "should be greater than or equal to 1"),
]


@pytest.mark.parametrize(("hint", "value", "told"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_by_name(hint, value, told):
    with pytest.raises(BadInput, match=told) as refusal:
        options_from_store(options(hint), {"x": value})
    assert str(refusal.value).startswith("--")
