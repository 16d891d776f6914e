"""Errors and silent traps of autograd, each as a mistake and its cure, found by the error's text.

Sources: PyTorch's notes "Autograd mechanics", and the messages that PyTorch itself prints. Entries that share a message
come in the order of their modules below, and within a module in that of their definition.
"""

from importlib import import_module

from common.pitfalls.engine import PITFALLS, Outcome, Pitfall, docstring, match_error, observe, one_rank, one_weight_gan

__all__ = [
    "PITFALLS",
    "Outcome",
    "Pitfall",
    "docstring",
    "match_error",
    "observe",
    "one_rank",
    "one_weight_gan",
]

ERRORS = (
    "graph",
    "views",
    "leaves",
    "no_graph",
    "losses",
    "dtypes",
    "derivatives",
    "functions",
    "checkpoints",
    "optimizers",
    "mixed_precision",
    "compiled",
    "parallel",
)
SILENT = ("lost_checks", "silent", "penalties", "wrappers")
for kind in (*ERRORS, *SILENT):
    import_module(f"{__name__}.{kind}")
