"""What the rules about errors of autograd share: a sentence with what is known, line by line."""

from collections.abc import Iterable, Sequence

from gradient_audit.findings import Sentence, joined
from gradient_audit.mistakes import why_and_cure
from gradient_audit.places import Place

Known = dict[str, Sequence[Place | str | None]]  # lines and texts, by what they are; the cure edits the last


def explained(text: str, networks: Iterable[str], known: Known, mistake: str, why: str, cure: str) -> Sentence:
    """Return a sentence about an error. why, cure: "" for those of the mistake."""
    usual_why, usual_cure = why_and_cure(mistake) if mistake else ("", "")
    cure = cure or usual_cure
    facts = {label: _first_of(things) for label, things in known.items() if things}
    facts |= {"why": why or usual_why, "cure": cure}
    places = [thing for things in reversed(known.values()) for thing in things if isinstance(thing, Place)]
    return Sentence(text, networks, places, cure, mistake=mistake, facts=(*facts.items(),))


def _first_of(things: Sequence[Place | str | None]) -> str:
    """Return the first five, lines with their source, or that no line was seen."""
    return joined([*dict.fromkeys(str(thing) for thing in things if thing)][:5] or ["a line that was not seen"])
