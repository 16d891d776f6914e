"""What the rules about errors of autograd share: a sentence with what is known, line by line."""

from collections.abc import Iterable

from gradient_audit.findings import Sentence, joined
from gradient_audit.mistakes import why_and_cure
from gradient_audit.places import Place


def lines_of(places: Iterable[Place | None]) -> str:
    """Return the first five lines with their source, or that none was seen."""
    return joined([*dict.fromkeys(str(place) for place in places if place)][:5] or ["a line that was not seen"])


def explained(
    text: str, networks: Iterable[str], places: list[Place], known: dict[str, str], mistake: str, why: str, cure: str
) -> Sentence:
    """Return a sentence about an error. known: what is known, by what it is. why, cure: "" for those of the mistake."""
    usual_why, usual_cure = why_and_cure(mistake) if mistake else ("", "")
    known |= {"why": why or usual_why, "cure": cure or usual_cure}
    return Sentence(text, networks, places, known["cure"], mistake=mistake, facts=(*known.items(),))
