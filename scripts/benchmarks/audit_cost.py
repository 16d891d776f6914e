"""What a gradient audit costs: the step of `gan_detach.py` alone, at the beginning of an audit, and later, in turns.

    python scripts/benchmarks/audit_cost.py
    python scripts/benchmarks/audit_cost.py --model mlp

Medians over the turns, with the smallest and the largest in brackets. Speed is in multiples of the step alone.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.launch import pick_device
from gradient_audit import GradientAudit
from scripts.benchmarks import compare_updates, harness
from scripts.benchmarks.update_orders import BASELINE, ORDERS
from scripts.tools.output import launch, table

FIRST_STEPS = 6  # of two backward passes, which are watched in detail
STEPS = 20


def main(options: compare_updates.StepOptions) -> None:
    """Measure, and print the table."""
    device = pick_device(options.device)
    stream, networks = compare_updates.images_and_networks(options, device)
    (step, trained), batch = compare_updates.gan_contender(ORDERS[BASELINE].train_step, networks), next(stream)
    first, later = [batch] * FIRST_STEPS, [batch] * STEPS
    harness.ms_of(step, later, device)  # the first ones are slow
    turns = []
    for _ in range(options.repeats):
        alone = harness.ms_of(step, later, device)
        with GradientAudit(**trained):
            turns.append((alone, harness.ms_of(step, first, device), harness.ms_of(step, later, device)))
    rows = []
    names = "no audit", f"first {FIRST_STEPS} steps of an audit", "later steps of an audit"
    for name, ms in zip(names, zip(*turns, strict=True), strict=True):
        speeds = [alone / own for (alone, *_), own in zip(turns, ms, strict=True)]
        rows.append([name, harness.spread(ms), harness.spread(speeds)])
    print(f"{harness.conditions(options, device)}.\n\n{table(['step', 'ms', 'speed'], rows)}")


if __name__ == "__main__":
    launch(main, compare_updates.StepOptions)
