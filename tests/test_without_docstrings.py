"""`python -OO`, which drops docstrings and asserts: a script trains, and the printed pitfalls are the same.

One process does both: compiling torch anew, without docstrings, is most of its time.
"""

import pytest
import torch
from helpers import path_of
from processes import python

BOTH = """
import runpy, sys
_, script, *arguments = sys.argv
where = arguments.index("then")
for sys.argv in ([script, *arguments[:where]], arguments[where + 1 :]):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.tools
def test_without_docstrings_a_script_trains_and_a_pitfall_prints_the_same(tmp_path, outcome, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    training = f"--model mlp --image-size 8 --batch-size 4 --steps 2 --device cpu --runs-dir {tmp_path}"
    pitfall = [path_of("autograd_pitfalls"), "step-between-backwards"]
    done = python("-OO", "-c", BOTH, path_of("gan_detach"), *training.split(), "then", *pitfall)
    assert done.returncode == 0, done.stderr
    (checkpoint,) = tmp_path.glob("*/*/checkpoint.pt")
    assert torch.load(checkpoint, weights_only=True)["step"] == 2
    assert done.stdout.endswith(outcome("autograd_pitfalls", "step-between-backwards").out)
