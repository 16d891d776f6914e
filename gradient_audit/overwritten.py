"""The error "modified by an inplace operation": which tensor it is about, who read it, who wrote it, and the cure."""

import re
from collections.abc import Callable, Iterable

from torch import Tensor, nn

from gradient_audit.findings import Finding, joined
from gradient_audit.graph import changed_saved_tensors, nodes_of, storage_address
from gradient_audit.lineage import Lineage
from gradient_audit.places import user_frames
from gradient_audit.record import Overwritten, Pass

MESSAGE = re.compile(r"modified by an inplace operation.*is at version (\d+); expected version (\d+)", re.DOTALL)

HIDDEN = (
    "; this optimizer does not raise the version of what it changes, so PyTorch alone gives a wrong gradient and no "
    "error: here raised by the audit"
)


def trace_overwritten(event: Pass, roots: list, message: str, lineage: Lineage) -> Overwritten:
    """Find the tensors that fit the error of a pass, who read them and who wrote them.

    Raises AttributeError for nodes that keep tensors elsewhere.
    """
    now, expected = map(int, MESSAGE.search(message).groups())
    blame = Overwritten(event)
    accounts = [(account, p) for account in lineage.accounts.values() if (p := account.parameter()) is not None]
    for node in sorted(nodes_of(roots), key=lambda node: -node._sequence_nr()):
        for tensor in changed_saved_tensors(node, message):
            storage = storage_address(tensor)
            of_node = re.sub(r"Backward\d*$", "", node.name())
            blame.storages.setdefault(storage, f"a tensor of shape {list(tensor.shape)} that {of_node} saved")
            if reader := lineage.line_of(node):
                blame.readers.append(reader)
            blame.behind |= lineage.reach([node])[0]
            for account, parameter in accounts:
                if storage_address(parameter) == storage:
                    blame.accounts.add(account.number)
                    blame.hidden |= account.raised
            variables = [item for frame in user_frames() for item in list(frame.f_locals.items())]
            for name, value in variables[::-1]:  # the innermost last
                if isinstance(value, Tensor) and storage_address(value) == storage and value._version == now:
                    blame.storages[storage] = f"`{name}`"
            writes = [w for w in lineage.writes if w.storage == storage and expected <= w.version < now]
            blame.writers += [write.place for write in writes]
            blame.operations |= {write.name for write in writes} - {""}
    blame.ahead = lineage.reach(roots)[0]
    return blame


def overwritten_finding(
    blame: Overwritten, networks: dict[str, nn.Module], names_of: Callable[[Iterable[int]], tuple[str, ...]]
) -> Finding:
    """Return the finding. names_of: the names of the networks that hold these accounts."""
    tensors = {
        storage_address(tensor): f"`{name}.{inner}`"
        for name, network in networks.items()
        for inner, tensor in [*network.named_parameters(), *network.named_buffers()]
    }
    names = [tensors.get(storage, description) for storage, description in blame.storages.items()]
    what = joined([*dict.fromkeys(names or ["a tensor of its graph"])][:5])
    writers = [*dict.fromkeys(map(str, blame.writers))] or ["a line that was not seen"]
    readers = [*dict.fromkeys(map(str, blame.readers))][:3] or ["the forward pass"]
    why = "the gradient is computed from the tensor as it was in the forward pass" + HIDDEN * blame.hidden
    wanted, read, written, cure = str(blame.event.place), joined(readers), joined(writers), _cure(blame, names_of)
    facts = {"wanted by": wanted, "tensor": what, "read by": read, "written by": written, "why": why, "cure": cure}
    text = f"{wanted} needs {what} as {read} found it; {written} has changed it since."
    places = tuple(dict.fromkeys([*blame.writers, *blame.readers, blame.event.place]))
    accused = names_of(blame.accounts or blame.ahead)
    return Finding("overwritten", accused, text, places, cure, tuple(facts.items()), blame.hidden)


def _cure(blame: Overwritten, names_of: Callable[[Iterable[int]], tuple[str, ...]]) -> str:
    """Return the cure that fits the culprit."""
    changed = set(names_of(blame.accounts))
    if blame.operations or not blame.accounts:
        names = joined(sorted(blame.operations)) or "the in-place operation"
        return f"Write to a new tensor in place of {names}: `x = x + y` for `x += y`, `inplace=False`, `clone()`."
    again = "ompute the forward pass again after the step, or step after the last `backward()` that needs it"
    if set(names_of(blame.behind)) - changed:  # the gradient goes through the changed network, to another
        return f"C{again}."
    if set(names_of(blame.ahead)) - changed:
        return f"If this loss is not for {joined(sorted(changed))}, `detach()` what it gets from there. Else c{again}."
    return f"C{again}; `detach()` what comes from an earlier step."
