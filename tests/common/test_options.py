"""Options as people, shells and accidents write them: honoured to the letter, or refused with a message, status 2.

Every script's own parser, and what its `main` asks of the numbers before it computes anything.
"""

import contextlib
import io
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints
from unittest import mock

import pytest
import torch
from helpers import GANS, PENALTIES, call, options_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.cyclegan_models import cyclegan_networks
from common.errors import blame
from common.models import MODELS
from common.run.command_line import launch
from common.run.option_values import checked
from common.run.options import GanOptions, RunOptions
from common.training_run import TrainingRun
from scripts.cyclegan import linear_decay

# What cannot be left out.
NEEDED = {"sample": ["run"], "evaluate": ["run"], "translate": ["run", "input", "--output=output"]}
SCRIPTS = [*GANS, "cyclegan", *NEEDED, "compare_updates", "compare_modes", "publish_runs"]
ONE_OF_A_KIND = ["gan_r3", "cyclegan", "sample", "compare_updates", "publish_runs"]
NUMBERS = ["0", "1", "2", "28", "64", "-1", "1.5", "-0.5", "1e-3", "1e400", "1e-400", "nan", "inf", "-inf", "1_000"]
NOT_NUMBERS = ["0x10", "1,", "2**3", "True", "1e", "½", "1 2"]
HUGE = ["9" * 20, "9" * 400, "9" * 5000, str(2**31), str(2**63), str(2**64)]
WORDS = [
    "",
    " ",
    "None",
    "none",
    "mlp",
    "conv",
    "bf16",
    "cpu",
    "cuda:99",
    "meta",
    "mps",
    "xla",
    "hpu",
    "cpu:0",
    "fp16",
]
ODD = ["a b", "a\nb", "\u2028", "ünï", "💥", "../..", "/", "--", "-", "-x", "--steps", "--help", "="]
written = (
    st.sampled_from(NUMBERS + NOT_NUMBERS)
    | st.sampled_from(HUGE)
    | st.sampled_from(WORDS + ODD)
    | st.text(max_size=9).filter(lambda text: text != "--")  # ends the options
)
sensible = st.integers(1, 300).map(str) | st.floats(1e-6, 0.99).map(str)


def readings(text, hint):
    """Return all that the annotation `hint` lets `text` mean."""
    if get_origin(hint) in (Union, UnionType):
        return [value for kind in get_args(hint) for value in readings(text, kind)]
    if get_origin(hint) is Literal:
        return [text] if text in get_args(hint) else []
    if hint is NoneType:
        return [None] if text == "None" else []
    try:
        return [hint(text)]
    except (ValueError, OverflowError):
        return []


@st.composite
def command_lines(draw, kind):
    """Draw (arguments, what is given for each field): some of the fields, each a list of texts."""
    hints, arguments, texts = get_type_hints(kind), [], {}
    for field in draw(st.lists(st.sampled_from(fields(kind)), max_size=3, unique=True)):
        hint, flag = hints[field.name], f"--{field.name.replace('_', '-')}"
        value = draw(st.sampled_from([written, sensible, sensible]))
        if hint is bool:
            texts[field.name] = []
            arguments += [flag]
        elif get_origin(hint) is tuple:
            texts[field.name] = draw(st.lists(value, min_size=1, max_size=3))
            arguments += [flag, *texts[field.name]]
        else:
            texts[field.name] = [draw(value)]
            arguments += [flag, *texts[field.name]] if draw(st.booleans()) else [f"{flag}={texts[field.name][0]}"]
    return arguments, texts


def stand_in(script, kind):
    """Return a `main` that keeps its options and does what the script's own does before it computes."""
    taken = []

    def main(options):
        taken.append(options)
        if issubclass(kind, RunOptions):
            TrainingRun(f"{script}.py", options)
        else:
            checked(options)
        if script == "cyclegan":
            linear_decay(options.steps, options.decay_from)
        shape = (1, getattr(options, "image_size", None) or 28, getattr(options, "image_size", None) or 28)
        with torch.device("meta"), blame("--image-size"):
            if issubclass(kind, GanOptions) or script == "compare_updates":
                MODELS[options.model](shape, getattr(options, "z_dim", GanOptions.z_dim))
            elif "cyclegan" in script:
                cyclegan_networks(shape, options.width, options.blocks, options.halvings)

    return main, taken


def outcome(script, kind, arguments):
    """Return (the options, or None where the command line is refused; the lines on stderr)."""
    main, taken = stand_in(script, kind)
    errors = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [script, *arguments]),
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        try:
            launch(main, kind)
        except SystemExit as exit:
            # 1: of the operating system, as for a file's name that is too long
            assert exit.code in (1, 2) or (not exit.code and {"--help", "-h"} & set(arguments))
            return None, errors.getvalue().splitlines() if exit.code else ["error: none, help was asked for"]
    return taken[0], errors.getvalue().splitlines()


def assert_refused(lines):
    """One line of ours, or tyro's box."""
    assert lines
    assert "Traceback" not in "".join(lines)
    assert len(lines) > 1 or len(lines[0]) > len("error: x")


@pytest.mark.parametrize("arguments", ["publish_runs --scripts --steps 2", "compare_modes --orders"])
def test_a_list_without_a_value_is_refused(arguments, refusal):
    assert "needs a value" in refusal(*arguments.split())


@pytest.mark.parametrize("script", ONE_OF_A_KIND)
def test_every_option_is_honoured_to_the_letter_or_refused_with_a_message(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # publish_runs makes the folder that its --output names
    kind = options_of(script)
    hints = get_type_hints(kind)
    seen = {True: 0, False: 0}

    @settings(max_examples=60)
    @given(command_lines(kind))
    @example(([], {}))
    def check(drawn):
        arguments, texts = drawn
        options, lines = outcome(script, kind, [*NEEDED.get(script, []), *arguments])
        seen[options is None] += 1
        if options is None:
            assert_refused(lines)
            return
        assert lines == []
        for field in fields(kind):
            found = getattr(options, field.name)
            if field.name not in texts:
                assert found == (Path(field.name) if field.default is MISSING else field.default)
            elif hints[field.name] is bool:
                assert found is True
            elif get_origin(hints[field.name]) is tuple:
                kinds = get_args(hints[field.name])
                assert list(found) == [kinds[0](text) for text in texts[field.name]]
            else:
                (text,) = texts[field.name]
                assert found in readings(text, hints[field.name])

    check()
    assert min(seen.values()) > 0


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
