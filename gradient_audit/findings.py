"""What an audit finds: the severities, and a finding."""

from collections.abc import Iterable
from dataclasses import dataclass

from gradient_audit.places import Place

SEVERITIES = {"error": "error", "question": "question", "waste": "wasted computation"}  # in words, the worst first
LIMIT = "Limit where gradients go: `loss.backward(inputs=list(network.parameters()))`"


@dataclass(frozen=True)
class Finding:
    """Something wrong, doubtful or wasteful; docs/mistakes.md of the repository explains the kinds."""

    kind: str
    severity: str  # one of SEVERITIES
    networks: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    cure: str
    mistakes: tuple[str, ...] = ()  # the names of those that look like it, the likeliest first
    facts: tuple[tuple[str, str], ...] = ()  # of what the script raised: what is wanted, who wrote it, and so on

    @property
    def mistake(self) -> str:
        """Which mistake it is, if that is known; else ""."""
        return self.mistakes[0] if len(self.mistakes) == 1 else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The places as `file.py:12`; the first is the one to look at."""
        return tuple(dict.fromkeys(place.where for place in self.places))

    def __str__(self) -> str:
        at = f" [{', '.join(self.lines)}]" if self.lines else ""
        alike = f" Mistakes like it: {', '.join(f'`{name}`' for name in self.mistakes)}." if self.mistakes else ""
        return f"**{self.kind}** ({self.severity}): {self.text}{at} {self.cure}{alike}"


@dataclass(frozen=True)
class Sentence:
    """What a rule says: its finding, but for what is the same of all its findings."""

    text: str  # {} stands for the networks
    networks: Iterable[str] = ()
    places: Iterable[Place] = ()
    cure: str = ""  # "" for that of the rule
    question: bool = False  # it is one, though the rule finds errors
    mistake: str = ""  # which it is, if more is known than that of the rule
    facts: tuple[tuple[str, str], ...] = ()


def joined(words: Iterable[str]) -> str:
    """Join words: "a", "a and b", "a, b and c"."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
