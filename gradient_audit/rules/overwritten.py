"""A tensor that a backward pass needs, and that was changed in place."""

from collections.abc import Iterator

from gradient_audit.errors import explained
from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.trace import Overwritten, TensorNamed

RANK = 70
SEVERITY = "error"
MEANING = """A backward pass needs a tensor as it was before it was changed in place, and the gradient that reaches it
is not zero."""
CURE = ""
MISTAKES = ("step-between-backwards", "fused-step", "edit-after-use", "inplace-activation", "data-edit")
EXHIBITS = ("bugs/clustergan_generator_step.py", "bugs/fused_step.py", "clean/edited_weight_behind_zero_gradient.py")
STEPPED = "Compute the forward pass again after the step, or step after the last `backward()` that needs it"
NEW = "`x = x + y` for `x += y`, `inplace=False`, `clone()`"


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the passes that raised, with the tensors, who read them and who wrote to them."""
    names = {event.tensor: event for event in facts.of(TensorNamed)}
    for event in facts.of(Overwritten):
        changed = tuple(dict.fromkeys(names[tensor].network for tensor, _ in event.tensors if tensor in names))
        tensors = [f"`{names[tensor].name}`" if tensor in names else words for tensor, words in event.tensors]
        writers = [place for place, _ in event.writers]
        known = {
            "wanted by": [event.place],
            "tensor": tensors or ["a tensor of its graph"],
            "read by": event.readers or [None],
            "written by": writers or [None],
        }
        behind = facts.networks_of(event.behind)
        operations = joined(sorted({operation for _, operation in event.writers} - {""}))
        fused = any(optimizer.fused for optimizer in facts.optimizers.values())
        mistake = "" if not event.hidden else "fused-step" if fused and not operations else "data-edit"
        why = "the gradient is computed from the tensor as it was in the forward pass"
        if event.hidden:
            why += "; this write raises no version, so PyTorch gives a wrong gradient and no error"
        if operations or not (changed or writers):
            cure = f"Make a new tensor, not {operations or 'the in-place operation'}, and use it: {NEW}."
        elif {*behind} - {*changed}:  # the gradient goes through the changed network, to another
            cure = f"{STEPPED}, each with `inputs=list(network.parameters())` of its own network."
        else:
            cure = f"{STEPPED}; `detach()` what comes from an earlier step or from a network that this loss is not for."
        text = "a backward pass needs a tensor as it was before it was changed in place."
        yield explained(text, changed or behind, known, mistake, why, cure)
