"""The cost of an audit is that of the same step, alone and under it."""

import pytest
from helpers import call

pytestmark = pytest.mark.usefixtures("few_objects")


def test_the_step_alone_is_the_unit_and_each_step_of_an_audit_has_a_row(capsys):
    call("audit_cost", "--model", "mlp", "--batch-size", 3, "--repeats", 1, "--device", "cpu")
    alone, first, later = capsys.readouterr().out.splitlines()[-3:]
    assert alone.startswith("| no audit ")
    assert alone.endswith("| 1.00 (1.00-1.00) |")
    assert first.startswith("| first 6 steps of an audit ")
    assert later.startswith("| later steps of an audit ")
