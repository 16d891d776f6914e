"""Time is taken in turns; speeds compare the calls of one turn."""

import torch

from scripts.benchmarks.harness import seconds_in_turns, spread, timings


def test_contenders_take_turns_on_the_same_arguments_and_the_first_calls_are_not_timed(monkeypatch):
    calls, clock = [], iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    contenders = {name: lambda value, name=name: calls.append(name + value) for name in "abc"}
    seconds = seconds_in_turns(contenders, [["1", "2", "3"], ["4", "5", "6"]], torch.device("cpu"))
    assert "".join(calls) == "a1a2a3b1b2b3c1c2c3" + "b4b5b6c4c5c6a4a5a6"
    assert seconds == {name: [0.5, 0.5] for name in "abc"}  # the clock ticks once for two timed calls


def test_a_speed_is_that_of_the_same_turn():
    """The machine is half as fast in the second turn, and the contender is twice as fast as the baseline in both."""
    rows = timings({"baseline": [2.0, 4.0], "contender": [1.0, 2.0]}, "baseline")
    assert rows == {
        "baseline": {"ms": [2000, 4000], "speed": [1, 1]},
        "contender": {"ms": [1000, 2000], "speed": [2, 2]},
    }


def test_a_spread_is_the_median_with_the_smallest_and_the_largest():
    assert spread([3, 1, 7], ".1f") == "3.0 (1.0-7.0)"
