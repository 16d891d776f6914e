"""Every mistake of the catalogue does here what its file says."""

import re
from dataclasses import replace

import pytest

from gradient_audit.findings import KINDS
from gradient_audit.mistakes import Outcome, describe, does_as_described, load, match, names, observe

ALL = [load(name) for name in names()]


@pytest.mark.parametrize("mistake", [m for m in ALL if not m.not_run], ids=lambda mistake: mistake.name)
def test_both_forms_do_what_the_file_says_and_the_message_finds_the_mistake_among_those_that_share_it(mistake):
    wrong, right = observe(mistake.wrong), observe(mistake.right)
    assert does_as_described(mistake, wrong, right), (wrong, right)
    assert not right.message
    assert not does_as_described(mistake, right, right)
    assert not does_as_described(mistake, wrong, wrong)
    assert wrong.message or mistake.silent
    if wrong.message:
        matches = match(wrong.message)
        assert mistake in matches
        assert set(matches[0].messages) & set(mistake.messages)


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_texts_are_sentences_and_the_mistakes_they_name_exist(mistake):
    for text in (mistake.why, mistake.cure):
        assert text.endswith(".")
        assert set(re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)", text)) <= set(names())
    assert bool(mistake.not_run) == (mistake.wrong is None) == (mistake.right is None)
    assert mistake.messages or not mistake.not_run


def test_the_mistakes_that_findings_name_exist():
    assert {name for kind in KINDS.values() for name in kind.mistakes} <= set(names())


def test_the_printout_says_so_where_a_form_does_something_else():
    mistake = load("data-edit")
    assert "does something else here" in describe(replace(mistake, wrong=mistake.right))
    assert "does something else here" not in describe(mistake)


@pytest.mark.parametrize(
    ("outcome", "expected", "same"),
    [
        (Outcome((None, [[0.35]])), (None, [[0.35000001]]), True),
        (Outcome([0.0, 0.0]), [0.0, 1e-6], False),
        (Outcome([1.0]), [1.0, 1.0], False),
        (Outcome(0.5, raised=True), 0.5, False),
    ],
)
def test_a_silent_mistake_is_as_described_only_if_its_numbers_are(outcome, expected, same):
    mistake = replace(load("data-edit"), wrong_returns=expected, right_returns=None)
    assert does_as_described(mistake, outcome, Outcome()) is same
