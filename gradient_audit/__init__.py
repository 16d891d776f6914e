"""Where every gradient of a training step goes, and what is wrong on its way; needs PyTorch alone.

`python -m gradient_audit train.py` audits a script, `GradientAudit` a block of your own code.

    watch/                 hooks see what the script does, number and name it, and add events to
    trace/                 what happened, in order: frozen events of plain data, `Trace.add` their only way in
    ledger, history        events, folded as they come: which passes each gradient is the sum of, a row for each thing
    steps, facts           what rules ask of a trace; terms, players, holders, graphs: what several rules ask
    rules/                 one finding a file; judge runs them all
    report, page           text, HTML
    mistakes/              the catalogue that a finding or an error message leads to

From `trace` down nothing needs PyTorch, which is imported when `GradientAudit` is asked for.
"""

from importlib import import_module

from gradient_audit.findings import Finding

__all__ = ["Finding", "GradientAudit", "GradientFlowError"]


def __getattr__(name: str) -> type:
    """Return what needs PyTorch."""
    if name in __all__:
        return getattr(import_module("gradient_audit.audit"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
