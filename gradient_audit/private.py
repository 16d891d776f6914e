"""Whether PyTorch still has the private names that the audit uses: tried on a sum and an error of its own."""

from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from gradient_audit.graph import storage_address
from gradient_audit.networks import Networks
from gradient_audit.operations import Details
from gradient_audit.overwritten import trace_overwritten
from gradient_audit.places import current_frames, current_place
from gradient_audit.record import Pass, Record

OPERATIONS = "forward passes, the terms of a loss and the lines of operations"
OVERWRITTEN = "which tensor was changed in place, and where"
WAITING = "optimizers that never step"
COMPILED = "whether a network is compiled"


@cache
def missing_parts() -> list[str]:
    """Return the parts of the answer that this version of PyTorch does not give."""
    with torch.inference_mode(False), torch.enable_grad():
        weight = nn.Parameter(torch.ones(2, device="cpu"))
        details = Details(Record(), Networks(), lambda: None)
        trials = {
            OPERATIONS: lambda: _splits_sum(details, weight),
            OVERWRITTEN: lambda: _traces_error(details, weight),
            WAITING: lambda: torch.optim.SGD([weight]).step.hooked,
            COMPILED: _knows_compiled_modules,
        }
        return [part for part, trial in trials.items() if not _succeeds(trial)]


def _succeeds(trial: Callable[[], object]) -> bool:
    try:
        return bool(trial())
    except Exception:  # of any kind: it is not known what will become of a private name
        return False


def _splits_sum(details: Details, weight: nn.Parameter) -> bool:
    """Return whether a sum is split into its terms, each with a place; under torch.func, too, a tensor has a memory."""
    try:
        details.start()
        code = compile(
            "weight.square().sum() + weight.exp().sum()", "<trial>", "eval"
        )  # lines that are not the audit's
        loss = eval(code, {"weight": weight})
    finally:
        details.stop()
    terms = details.lineage.terms_of([loss.grad_fn], current_frames()[0].f_code)
    addresses = []
    torch.func.vmap(lambda row: addresses.append(storage_address(row)) or row)(weight)
    return len(terms) == 2 and all(term.place for term in terms) and addresses[0] == storage_address(weight)


def _traces_error(details: Details, weight: nn.Parameter) -> bool:
    """Return whether an error "modified by an inplace operation" is traced to a reader, a writer and a tensor."""
    details.start()
    try:
        changed = weight.exp()
        changed.mul_(2)
    finally:
        details.stop()
    try:
        torch.autograd.grad(changed.sum(), weight)
    except RuntimeError as error:
        event = Pass("backward", current_place())
        blame = trace_overwritten(event, [changed.grad_fn], str(error), details.lineage, set())
    return bool(blame.storages and blame.readers and blame.writers)


def _knows_compiled_modules() -> bool:
    from torch._dynamo.eval_frame import OptimizedModule  # torch.compile, which makes one, takes 0.4 s at first

    compiled = OptimizedModule(nn.Identity(), lambda forward: forward)
    return hasattr(compiled, "_orig_mod") and hasattr(nn.Identity(), "_compiled_call_impl")
