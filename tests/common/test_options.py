"""Options: their ranges, their way through a checkpoint and back, and the help of every script."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal
from unittest import mock

import numpy as np
import pytest

from common.errors import BadInput, counted, one_line
from common.options import Count, Decay, Range, RunOptions, parse, parse_resumed


@dataclass(frozen=True)
class Own(RunOptions):
    """Options of a script with networks of its own."""

    rate: Annotated[float, Range(0.5, 2)] = 1.0
    pair: tuple[Decay, Decay] = (0.0, 0.9)
    count: Count | None = None
    kind: Literal["a", "b"] = "a"
    text: str = "-x y"
    free: float = 0.0
    path: Path | None = None
    switch: bool = False
    rates: tuple[Decay, Decay] | None = None
    nested: tuple[tuple[Decay, Decay], ...] = ()


REFUSED = [
    ({"rate": 0.4}, "--rate=0.4: must be from 0.5 to 2"),
    ({"rate": float("nan")}, "--rate=nan: must be from 0.5 to 2"),
    ({"free": float("nan")}, "--free=nan: must be a number"),
    ({"pair": (0.0, 1.0)}, "--pair=(0.0, 1.0): must be from 0 to 0.999999"),
    ({"count": 0}, "--count=0: must be from 1 to 1000000000"),
    ({"batch_size": 0}, "--batch-size=0: must be from 1 to"),
    ({"kind": "c"}, "--kind=c: "),
    ({"rates": (0.5, 1.0)}, "--rates=(0.5, 1.0): must be from 0 to 0.999999"),
    ({"nested": ((0.5, -1.0),)}, "--nested=((0.5, -1.0),): must be from 0 to 0.999999"),
]


@pytest.mark.parametrize(("values", "told"), REFUSED)
def test_a_value_of_another_range_or_type_is_refused_by_the_option_s_name(values, told):
    with pytest.raises(BadInput, match=re.escape(told)):
        Own(**values)


def test_the_ends_of_a_range_belong_to_it():
    assert (Own(rate=0.5).rate, Own(rate=2.0).rate, Own(count=1).count, Own(count=10**9).count) == (0.5, 2, 1, 10**9)


def resumed(options):
    """Return the options of a run that is resumed without any on the command line."""
    with mock.patch("sys.argv", ["own.py"]):
        return parse_resumed(resumed, Own, "own", {"script": "own", "step": 1, "options": options})


@pytest.mark.parametrize(
    "options",
    [Own(), Own(rate=1.25, pair=(0.1, 0.2), count=3, kind="b", text="", path=Path("/a b"), switch=True, name="x")],
)
def test_options_come_back_from_a_checkpoint_as_they_were(options):
    assert resumed(options.to_store()) == options


def test_an_option_that_a_script_has_lost_or_that_the_run_lacks_is_named():
    stored = Own().to_store()
    with pytest.raises(BadInput, match="only one of the run and this script has --lost-one; take --init-from"):
        resumed(stored | {"lost_one": 1})
    with pytest.raises(BadInput, match="only one of the run and this script has --switch; take --init-from"):
        resumed({name: value for name, value in stored.items() if name != "switch"})


def test_an_error_is_one_line_whatever_is_in_it():
    assert one_line("a\nb\x1b[1m\udcff c\t d") == r"a\nb\x1b[1m\udcff c\t d"


def test_a_list_without_a_value_is_refused(refusal):
    assert "--orders" in refusal("compare_modes", "--orders")


def test_what_is_counted_is_in_the_plural_but_for_one():
    assert [counted(count, "step") for count in (0, 1, 2, 10**7)] == ["0 steps", "1 step", "2 steps", "10000000 steps"]
    assert [counted(count, "minute") for count in (1.0, 0.5)] == ["1 minute", "0.5 minutes"]


def test_a_text_that_is_given_empty_where_it_may_be_left_out_is_refused():
    for line in (["--name", ""], ["--device="]):
        option = re.match("--[a-z]+", line[0])[0]
        with mock.patch("sys.argv", ["own.py", *line]), pytest.raises(BadInput, match=f"{option}=: is empty"):
            parse(resumed, Own)
    with mock.patch("sys.argv", ["own.py", "--text="]):
        assert parse(resumed, Own).text == ""


def test_options_that_python_would_leave_out_are_refused():
    class Bare(RunOptions):
        steps: Count = 3

    @dataclass(frozen=True)
    class Untyped(RunOptions):
        steps = 3

    class Inherited(RunOptions):
        def double(self):
            return 2 * self.steps

    with pytest.raises(BadInput, match="Bare: write @dataclass"):
        Bare()
    with pytest.raises(BadInput, match=r"Untyped\.steps: has no effect without its type"):
        Untyped()
    assert Inherited(steps=3).double() == 6


def test_a_rate_of_numpy_is_stored_as_a_number():
    assert type(Own(rate=np.float64(1.5)).to_store()["rate"]) is float


def test_what_an_options_class_keeps_for_itself_is_no_option():
    @dataclass(frozen=True)
    class Cached(RunOptions):
        dataset: str | None = None

        @cached_property
        def double(self):
            return 2 * self.steps

    options = Cached()
    assert options.double == 4000 and "double" not in options.to_store()

    @dataclass(frozen=True, slots=True)
    class Slots(RunOptions):
        warm: int = 3

    assert Slots().to_store()["warm"] == 3


def test_the_precision_is_not_chosen_after_the_run_has_read_it():
    with pytest.raises(BadInput, match="--precision=bf16: chosen by main, too late"):
        Own(precision="bf16").check_chosen(Own())
