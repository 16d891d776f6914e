"""Whether PyTorch still has the private names that the audit uses: tried on a sum and an error of its own."""

from contextlib import suppress
from functools import cache

import torch
from torch import nn

from gradient_audit.graph import storage_of
from gradient_audit.mistakes.raised import trace_overwritten
from gradient_audit.operations import Details
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
    given = {}
    with torch.inference_mode(False), torch.enable_grad():
        details, names = Details(Record(), lambda: None), {"w": nn.Parameter(torch.ones(2, device="cpu"))}
        with suppress(Exception):  # whatever a private name became
            try:
                details.start()
                exec(LOSSES, names)
            finally:
                details.stop()
        with suppress(Exception):
            torch.func.vmap(lambda row: row * storage_of(row).data_ptr())(names["w"])  # it has a memory, too
            terms = details.lineage.terms_of([names["loss"].grad_fn], LOSSES)
            given[OPERATIONS] = len(terms) == 2 and all(term.place for term in terms)
        try:
            names["lost"].sum().backward()
        except Exception as error:
            with suppress(Exception):
                event, roots = Pass("backward", None), [names["lost"].grad_fn]
                blame = trace_overwritten(event, roots, str(error), details.lineage)
                given[OVERWRITTEN] = blame.storages and blame.readers and blame.writers
        with suppress(Exception):
            given[WAITING] = torch.optim.SGD([names["w"]]).step.hooked
        with suppress(Exception):
            from torch._dynamo.eval_frame import OptimizedModule  # torch.compile takes 0.4 s at first

            compiled = OptimizedModule(nn.Identity(), lambda forward: forward)
            given[COMPILED] = hasattr(compiled, "_orig_mod") and hasattr(nn.Identity(), "_compiled_call_impl")
    return [part for part in (OPERATIONS, OVERWRITTEN, WAITING, COMPILED) if not given.get(part)]
