"""Whether PyTorch still has the private names that the audit uses: tried on a sum and an error of its own."""

from contextlib import suppress
from functools import cache

import torch
from torch import nn

from gradient_audit.graph import storage_of
from gradient_audit.lineage import Lineage
from gradient_audit.operations import Details
from gradient_audit.overwritten import trace_overwritten
from gradient_audit.record import Pass, Record

OPERATIONS = "forward passes, the terms of a loss and the lines of operations"
OVERWRITTEN = "which tensor was changed in place, and where"
WAITING = "optimizers that never step"
COMPILED = "whether a network is compiled"


# Two losses, in lines that are not the audit's: a sum of two terms, and one of a tensor that is changed after its use.
LOSSES = compile("loss = w.square().sum() + w.exp().sum()\nlost = w.exp()\nlost.mul_(2)", "<trial>", "exec")


@cache
def missing_parts() -> list[str]:
    """Return the parts of the answer that this version of PyTorch does not give."""
    trials = {
        OPERATIONS: _splits_sum,
        OVERWRITTEN: _traces_error,
        WAITING: lambda: torch.optim.SGD([torch.ones(1, device="cpu")]).step.hooked,
        COMPILED: _knows_compiled_modules,
    }
    missing = []
    for part, trial in trials.items():
        with torch.inference_mode(False), torch.enable_grad(), suppress(Exception):  # whatever a private name became
            if trial():
                continue
        missing.append(part)
    return missing


def _watched_losses() -> tuple[Lineage, dict]:
    details = Details(Record(), lambda: None)
    names = {"w": nn.Parameter(torch.ones(2, device="cpu"))}
    try:
        details.start()
        exec(LOSSES, names)
    finally:
        details.stop()
    return details.lineage, names


def _splits_sum() -> bool:
    """Return whether a sum is split into its terms, each with a place; under torch.func, too, a tensor has a memory."""
    lineage, names = _watched_losses()
    terms = lineage.terms_of([names["loss"].grad_fn], LOSSES)
    storages = [storage_of(names["w"])]
    torch.func.vmap(lambda row: storages.append(storage_of(row)) or row)(names["w"])
    return len(terms) == 2 and all(term.place for term in terms) and storages[0] is storages[1]


def _traces_error() -> bool:
    """Return whether an error "modified by an inplace operation" is traced to a reader, a writer and a tensor."""
    lineage, names = _watched_losses()
    try:
        names["lost"].sum().backward()
    except RuntimeError as error:
        blame = trace_overwritten(Pass("backward", None), [names["lost"].grad_fn], str(error), lineage, set())
    return bool(blame.storages and blame.readers and blame.writers)


def _knows_compiled_modules() -> bool:
    from torch._dynamo.eval_frame import OptimizedModule  # torch.compile, which makes one, takes 0.4 s at first

    compiled = OptimizedModule(nn.Identity(), lambda forward: forward)
    return hasattr(compiled, "_orig_mod") and hasattr(nn.Identity(), "_compiled_call_impl")
