"""`python -m gradient_audit`, as a file: tests run files in forked processes.

With a folder in the environment variable TRACES, the trace of the audit is left there as JSON, and what is said of it.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # makes `gradient_audit` importable from any folder

from gradient_audit.__main__ import main


def leave_trace(folder):
    """Have the judgement write down what it judges, and what it says."""
    from gradient_audit import audit

    sys.path.insert(0, str(ROOT / "tests" / "gradient_audit" / "museum"))
    import trace_json

    del sys.path[0]
    judge = audit.judge

    def judged(trace):
        (folder / "trace.json").write_text(json.dumps([trace_json.encode(event) for event in trace.events]))
        (folder / "said.json").write_text(json.dumps(trace_json.said_of(trace)))
        return judge(trace)

    audit.judge = judged


if __name__ == "__main__":
    if traces := os.environ.pop("TRACES", ""):
        leave_trace(Path(traces))
    sys.exit(main())
