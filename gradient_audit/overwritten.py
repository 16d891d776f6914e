"""The error "modified by an inplace operation": which tensor it is about, who read it, who wrote it, and the cure."""

import re
from collections.abc import Iterator

from torch import Tensor

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import changed_saved_tensors, nodes_of, storage_of
from gradient_audit.lineage import Lineage
from gradient_audit.places import user_frames
from gradient_audit.record import Overwritten, Pass

MESSAGE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)

HIDDEN = "; this write raises no version, so PyTorch alone gives a wrong gradient and no error: raised by the audit"


def trace_overwritten(event: Pass, roots: list, message: str, lineage: Lineage) -> Overwritten:
    """Find the tensors that fit the error of a pass, who read them and who wrote them.

    Raises AttributeError for nodes that keep tensors elsewhere.
    """
    now, expected = map(int, MESSAGE.search(message).groups())
    blame = Overwritten(event)
    for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
        for tensor in changed_saved_tensors(node, message):
            storage, memory = storage_of(tensor), lineage.memory_of(tensor)
            blame.hidden |= memory.raised
            of_node = re.sub(r"Backward\d*$", "", node.name())
            blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            blame.readers += filter(None, [lineage.line_of(node)])
            blame.behind |= lineage.reach([node])[0]
            for account in list(lineage.accounts.values()):
                if (parameter := account.parameter()) is not None and storage_of(parameter) is storage:
                    blame.accounts.add(account.number)
                    blame.hidden |= account.raised
            variables = [item for frame in user_frames() for item in list(frame.f_locals.items())]
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_of(value) is storage and value._version == now:
                    blame.storages[storage] = f"`{name}`"
            writes = [w for w in lineage.writes if w.memory is memory and expected <= w.version < now]
            blame.writers += [write.place for write in writes]
            blame.operations |= {write.name for write in writes} - {""}
    blame.ahead = lineage.reach(roots)[0]
    return blame


def overwritten_tensors(facts: Facts) -> Iterator[Finding]:
    """Yield the backward passes that needed a tensor as it was before it was changed in place."""
    tensors = {
        storage_of(tensor): f"`{name}.{inner}`"
        for name, network in facts.networks.items()
        for inner, tensor in [*network.named_parameters(), *network.named_buffers()]
    }
    for blame in facts.record.overwritten:
        names = [tensors.get(storage, description) for storage, description in blame.storages.items()]
        told = {
            "wanted by": str(blame.event.place),
            "tensor": joined([*dict.fromkeys(names or ["a tensor of its graph"])][:5]),
            "read by": joined([*dict.fromkeys(map(str, blame.readers))][:3] or ["the forward pass"]),
            "written by": joined([*dict.fromkeys(map(str, blame.writers))] or ["a line that was not seen"]),
            "why": "the gradient is computed from the tensor as it was in the forward pass" + HIDDEN * blame.hidden,
            "cure": _cure(blame, facts),
        }
        text = "{wanted by} needs {tensor} as {read by} found it; {written by} has changed it since.".format(**told)
        places = tuple(dict.fromkeys([*blame.writers, *blame.readers, blame.event.place]))
        accused = facts.networks_of(blame.accounts or blame.ahead)
        yield Finding("overwritten", accused, text, places, told["cure"], tuple(told.items()), blame.hidden)


def _cure(blame: Overwritten, facts: Facts) -> str:
    """Return the cure that fits the culprit."""
    if blame.operations or not blame.accounts:
        names = joined(sorted(blame.operations)) or "the in-place operation"
        return f"Write to a new tensor in place of {names}: `x = x + y` for `x += y`, `inplace=False`, `clone()`."
    cure = "Compute the forward pass again after the step, or step after the last `backward()` that needs it"
    if {*facts.networks_of(blame.behind)} - {*facts.networks_of(blame.accounts)}:
        return f"{cure}."  # the gradient goes through the changed network, to another
    return f"{cure}; `detach()` what comes from an earlier step or from a network that this loss is not for."
