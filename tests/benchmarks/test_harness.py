"""Time is taken in turns; speeds compare the calls of one turn."""

import torch

from scripts.benchmarks.harness import environment, seconds_in_turns, timings


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
    assert rows["baseline"] == {"ms": 3000, "quartiles": [2500, 3500], "speed": 1, "speed_quartiles": [1, 1]}
    assert rows["contender"] == {"ms": 1500, "quartiles": [1250, 1750], "speed": 2, "speed_quartiles": [2, 2]}


def test_the_environment_names_machine_threads_and_versions():
    found = environment(torch.device("cpu"))
    assert found["device"] == "cpu"
    assert found["threads"] == str(torch.get_num_threads())
    assert found["torch"] == torch.__version__
    assert all(found.values())
