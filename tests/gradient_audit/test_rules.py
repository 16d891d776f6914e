"""The rules: each has a place of its own in the report, and exhibits that show what it finds and what it must not."""

import re

import pages
import pytest

from gradient_audit.findings import SEVERITIES
from gradient_audit.judge import judge
from gradient_audit.mistakes import names
from gradient_audit.places import Place
from gradient_audit.rules import rules
from gradient_audit.trace import Network, Optimizer, ParameterFound, Pass, PassBegan, Step, Trace


def test_no_two_rules_have_the_same_rank_or_kind():
    for values in ([rule.rank for rule in rules()], [rule.kind for rule in rules()]):
        assert len({*values}) == len(values)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.kind)
def test_a_rule_has_a_bug_that_it_finds_and_a_right_loop_that_it_leaves_alone(rule):
    assert rule.severity in SEVERITIES
    assert {*rule.mistakes} <= {*names()}
    texts = {name: (pages.MUSEUM / name).read_text() for name in rule.exhibits}
    told = {
        name for name, text in texts.items() if re.search(rf"^# expects: \w+ {re.escape(rule.kind)}(\s|$)", text, re.M)
    }
    assert told >= {name for name in texts if name.startswith("bugs/")}
    assert told and texts.keys() - told  # a right loop may get a question


@pytest.mark.parametrize("turns", [1, 2])
def test_a_trace_that_is_written_by_hand_is_judged_as_one_that_was_watched(turns):
    """One parameter, a pass and a step in each turn of a loop, and no zero_grad()."""
    here, weight, trace = Place("train.py", 12, "train"), frozenset({1}), Trace()
    trace.add(ParameterFound(1, None))
    for turn in range(turns):
        trace.add(PassBegan(here, turn, "backward", detailed=False))
        trace.add(Pass(turn, reached=weight))
        trace.add(Step(here._replace(number=13), 7, weight, weight, weight, frozenset(), inside=None, inner=False))
    trace.add(Network("D", 2, "Linear", {1: "weight"}, size=1, made=None))
    trace.add(Optimizer(7, "SGD", (1,), frozenset(), (), fused=False, has_state=False, made=None))
    found = [(finding.kind, finding.networks, finding.lines) for finding in judge(trace).findings]
    assert found == [("stale", ("D",), ("train.py:12", "train.py:13"))] * (turns - 1)


def test_every_package_of_the_audit_is_in_the_wheel():
    text = (pages.ROOT / "pyproject.toml").read_text()
    (listed,) = re.findall(r"^packages = (\[.+?\])", text, re.M | re.S)
    folders = {path.parent.relative_to(pages.ROOT) for path in (pages.ROOT / "gradient_audit").rglob("__init__.py")}
    assert {*re.findall(r'"(.+?)"', listed)} == {".".join(folder.parts) for folder in folders}
