"""What a gradient audit costs: the step of `gan_detach.py` alone, at the beginning of an audit, and later, in turns.

    python scripts/benchmarks/audit_cost.py
    python scripts/benchmarks/audit_cost.py --model mlp

Medians over the turns, with the smallest and the largest in brackets. Speed is in multiples of the step alone.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # makes `common` and `scripts` importable from any folder

from common.launch import pick_device
from common.options import BatchSize, Count, GanOptions, NetworkOptions
from gradient_audit import GradientAudit
from scripts.benchmarks import compare_updates, harness
from scripts.benchmarks.update_orders import BASELINE, ORDERS
from scripts.tools.output import launch, table

FIRST_STEPS = 6  # of two backward passes, which are watched in detail
STEPS = 20


@dataclass(frozen=True)
class Options(NetworkOptions):
    """Options of the comparison."""

    networks: str | None = None  # FILE:FUNCTION as of compare_updates.py; None takes those of --model.
    batch_size: BatchSize = GanOptions.batch_size  # Images per step.
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.
    repeats: Count = 20  # Turns; 3 are a quick look.


def main(options: Options) -> None:
    """Measure, and print the table."""
    device = pick_device(options.device)
    stream, networks = compare_updates.images_and_networks(options, device)
    (step, trained), batch = compare_updates.gan_contender(ORDERS[BASELINE].train_step, networks), next(stream)

    def ms_of(count: int) -> float:
        start = harness.clock(device)
        for _ in range(count):
            step(*batch)
        return 1e3 * (harness.clock(device) - start) / count

    ms_of(STEPS)  # the first ones are slow
    turns = []
    for _ in range(options.repeats):
        alone = ms_of(STEPS)
        with GradientAudit(**trained):
            turns.append((alone, ms_of(FIRST_STEPS), ms_of(STEPS)))
    rows = []
    names = "no audit", f"first {FIRST_STEPS} steps of an audit", "later steps of an audit"
    for name, ms in zip(names, zip(*turns, strict=True), strict=True):
        speeds = [alone / own for (alone, *_), own in zip(turns, ms, strict=True)]
        rows.append([name, harness.spread(ms), harness.spread(speeds)])
    print(harness.conditions(harness.make_result(options, device, {})))
    print(f"\n{table(['step', 'ms', 'speed'], rows)}")


if __name__ == "__main__":
    launch(main, Options)
