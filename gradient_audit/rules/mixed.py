"""A step on the sum of two losses' gradients, of which one was for another network."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import LIMIT, Sentence, joined
from gradient_audit.places import Place
from gradient_audit.players import mixtures, oppositions

RANK = 20
SEVERITY = "error"
MEANING = """A step used the sum of two losses' gradients, of which one was for another network. Or D stepped on G's
loss alone, against its own. As a question: the losses may be meant for one network."""
CURE = f"{LIMIT}, or clear the gradients that are not for the step."
MISTAKES = ("d-steps-on-g-loss",)
EXHIBITS = ("bugs/lightning_gan_leak.py", "bugs/d_steps_on_g_loss_alone.py", "clean/chained_discriminators.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the sums, and the steps on the other player's loss; see `players`."""
    stale = {step for steps in facts.steps.values() for _, step in steps.stale}
    found: dict[tuple[tuple[Place, ...], bool], dict[str, bool]] = defaultdict(dict)  # as several discriminators have
    for networks, mixture in facts.once(mixtures).items():
        if stale.issuperset(mixture.places[1::2]):  # the steps: the cure of `stale` clears these gradients, too
            continue
        is_added_to = {name: name in mixture.added_to for name in networks}
        found[tuple(dict.fromkeys(mixture.places)), mixture.proved] |= is_added_to
    for (places, is_proved), is_added_to in found.items():
        names = joined(name for name in is_added_to if is_added_to[name])
        text = f"`backward()` also wrote gradients into {names}. They were not cleared, so `step()` used the sum "
        yield Sentence(f"{text}of two losses.", is_added_to, places, question=not is_proved)
    yield from facts.once(oppositions)[False]
