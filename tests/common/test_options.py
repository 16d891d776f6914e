"""The command line of every script: its help fits on a screen, and a list without a value is refused."""

import contextlib
import io

import pytest
from helpers import GANS, PENALTIES, call, options_of

from common.run.options import RunOptions

SCRIPTS = [*GANS, "cyclegan", "sample", "evaluate", "translate", "compare_updates", "compare_modes", "publish_runs"]


@pytest.mark.parametrize("arguments", ["publish_runs --scripts --steps 2", "compare_modes --orders"])
def test_a_list_without_a_value_is_refused(arguments, refusal):
    assert "needs a value" in refusal(*arguments.split())


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_fits_on_a_screen_and_begins_with_data_networks_and_training(script, monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit), contextlib.redirect_stdout(terminal):
        call(script, "--help")
    terminal.seek(0)
    lines = terminal.read().splitlines()
    assert len(lines) <= (40 if script in GANS and script.removeprefix("gan_") not in PENALTIES else 48)
    if issubclass(options_of(script), RunOptions):
        shown = [line.split()[1] for line in lines if line.startswith("│ --")]
        expected = ["--dataset", "--batch-size", "--lr", "--device", "--runs-dir", "--audit"]
        assert [name for name in shown if name in expected] == expected
