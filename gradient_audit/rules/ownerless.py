"""Parameters that get gradients, and that no optimizer holds."""

import re
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.holders import Unused, mistaken_optimizers, unused_gradients
from gradient_audit.terms import left_out_networks
from gradient_audit.trace import ParameterFound, TensorNamed

RANK = 50
SEVERITY = "error"
MEANING = """Parameters get gradients, and no optimizer holds them: none ever did, one did before, or one holds the
parameters that they replaced. Or a term of a loss gives gradients to such parameters alone."""
CURE = "Give them to an optimizer, or freeze them with `requires_grad_(False)`."
MISTAKES = ("optimizer-old-weights",)
EXHIBITS = ("bugs/meta_optimizer_list.py", "bugs/optimizer_before_layers.py", "clean/perceptual_judge.py")
WRITTEN = """The script writes others to them. If the loss is for what they are a copy of, call that in its place; if
they are to be trained, give them to an optimizer. Compute a target or an average under `torch.no_grad()`; if another
network makes them, `.data =` cuts that off: `torch.func.functional_call()` takes them with their graph."""

REMADE = "Make the optimizer after this line, or give it the new ones with `add_param_group()`."
MEANT = "If the optimizer that is made here was meant for them, give them to it, in place of those that it holds."
CONTAINED = """If a plain dict, list or tuple in a module holds it, make that an `nn.ModuleDict` or `nn.ModuleList`, so
that `parameters()` finds it; else give it to an optimizer, or freeze it with `requires_grad_(False)`."""


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield what an optimizer held before, what took the place of what it holds, and what none holds."""
    for unused in facts.once(unused_gradients):
        network = unused.network
        if unused.lost:
            text = f"{facts.count_of(unused.lost, network)} of {{}} are no longer held by the optimizer that stepped "
            cure = "See what changes its `param_groups`; a generator there, as `network.parameters()`, is used up once."
            yield Sentence(f"{text}on them.", (network,), unused.wasted, cure)
        if unused.swapped:
            count = facts.count_of({*unused.swapped}, network)
            text = f"{count} of {{}} are held by no optimizer; one holds those whose place they took."
            yield Sentence(text, (network,), [*unused.swapped.values(), *unused.wasted], REMADE)
        if unused.ownerless and not unused.meant:
            yield _never_held(facts, unused)
    yield from _plain_leaves(facts)


def _never_held(facts: Facts, unused: Unused) -> Sentence:
    network, ownerless = unused.network, unused.ownerless
    holders = [facts.optimizers[number] for number in facts.holders_of(network)] or [*facts.optimizers.values()]
    mistaken = [facts.optimizers[key] for key in facts.once(mistaken_optimizers) if not facts.holders_of(network)]
    makers = {one.made: None for one in (*mistaken, facts.networks[network], *holders) if one.made}
    born = {found.made for found in facts.of(ParameterFound) if found.number in ownerless} - {None}
    made = [*makers, *(born if len(born) == 1 else ())]
    if parametrized := born and all("parametrizations." in facts.parameters[network][n] for n in ownerless):
        made = [max(born, key=lambda place: place.number), *makers]  # the last one that did it
    text = f"{facts.count_of(ownerless, network)} of {{}} are held by no optimizer."
    if network in facts.once(left_out_networks):
        text = "no optimizer holds {}, and a term of a loss leads to nothing else."
    contained = CONTAINED if re.search(r"\..*\]$", network) else ""
    cure, mistake = WRITTEN if ownerless <= facts.end.written else contained, ""
    cure = REMADE if parametrized else cure
    for optimizer in mistaken[:1]:
        cure = MEANT
        others = joined(facts.networks_of(optimizer.parameters))
        mistake = "parameter-twice" if len({*optimizer.parameters}) < len(optimizer.parameters) else ""
        text += f" The optimizer of {others} {'holds these twice' if mistake else 'never found a gradient'}."
    return Sentence(text, (network,), [*made, *unused.wasted], cure, mistake=mistake)


def _plain_leaves(facts: Facts) -> Iterator[Sentence]:
    """Yield the leaves in a network that are no parameters of it: no optimizer gets them."""
    for leaf in facts.of(TensorNamed):
        places = [p.place for p in facts.passes if leaf.tensor in p.leaves and p.place not in facts.read_lines]
        if places and leaf.tensor not in facts.owned_leaves:
            text = f"the tensor {leaf.name} gets gradients; it is no nn.Parameter, and no optimizer holds it."
            cure = "Make it an `nn.Parameter`, so that `parameters()` holds it."
            yield Sentence(text, (leaf.network,), places, cure)
