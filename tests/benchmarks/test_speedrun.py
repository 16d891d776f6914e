"""The speedrun times training alone, of files with one function."""

import pytest
from helpers import call

OWN = """
import time
import torch

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def draw(count):
    work(2)
    return drawn[torch.randint(len(drawn), (count,))]

def train(images, seed):
    global drawn
    assert (images.shape, seed) == ((4000, 1, 28, 28), 0)
    drawn = images * 0.0
    yield draw
    work(0.2)
    drawn = images[::40] / 127.5 - 1
    yield draw
"""


@pytest.mark.tools
def test_the_clock_stands_still_while_samples_are_drawn_and_who_ends_or_takes_too_long_has_not_arrived(
    tmp_path, capsys, untrained, outcome
):
    def rows(*arguments):
        call("speedrun", *arguments, "--dataset", "mnist5k", "--seeds", 1)
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[2:]]

    own, ends = tmp_path / "own.py", tmp_path / "ends.py"
    own.write_text(OWN)
    ends.write_text(OWN.replace("    work(0.2)", "    return"))
    (default,) = rows("--target", 1e9)  # any FID is below this target: the first look is the last
    assert default[0].endswith("contender.py")
    assert (default[2], default[3]) == ("1.00", "1 of 1")
    first, second = rows(ends, "--baseline", own, "--target", 200)
    assert 0.2 <= float(first[1].split()[0]) < 2
    assert (first[2], first[3]) == ("1.00", "1 of 1")
    assert second[1:4] == ["not reached", "-", "0 of 1"]
    (late,) = rows("--baseline", own, "--target", 200, "--minutes", 0.001)
    assert late[1:4] == ["not reached", "-", "0 of 1"]
    own.write_text(OWN.replace("def train", "def learn"))
    status, _, error = outcome("speedrun", "--baseline", own, "--dataset", "mnist5k")
    assert status == 1
    assert f"{own}: failed with status 1" in error
    for other in ("drawn[:10]", "0.0 / drawn", "(drawn + 1) * 127"):  # fewer than were asked for; NaN; in [0, 254]
        own.write_text(OWN.replace("return drawn", f"return {other}  # "))
        assert outcome("speedrun", "--baseline", own, "--dataset", "mnist5k")[0] == 1
    assert "nowhere.py: is no file" in outcome("speedrun", "nowhere.py", "--dataset", "mnist5k")[2]
    assert "a contender is named twice" in outcome("speedrun", own, own, "--dataset", "mnist5k")[2]
