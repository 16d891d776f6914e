"""The rules, one a file: what each finds, how bad it is, what it means, and how it is cured.

A file has a `find(facts)` that yields a `Sentence` for each finding, and the constants SEVERITY (one of
`findings.SEVERITIES`), MEANING (its row in docs/mistakes.md), CURE, EXHIBITS (of the museum: what it finds, and what it
must not), RANK (its place in the report), and, if it has any, MISTAKES (of the catalogue, the likeliest first). Its
kind is the name of the file, or KIND.
"""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from gradient_audit.facts import Facts
from gradient_audit.findings import Finding


class Rule:
    """A rule, as its file describes it."""

    def __init__(self, name: str, module: ModuleType):
        self.kind: str = getattr(module, "KIND", name)
        self.mistakes: tuple[str, ...] = getattr(module, "MISTAKES", ())
        self.rank, self.severity, self.exhibits = module.RANK, module.SEVERITY, module.EXHIBITS
        self.meaning, self.cure = (" ".join(text.split()) for text in (module.MEANING, module.CURE))
        self.find = module.find

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield what the rule finds; {} in a text stands for the networks."""
        for said in self.find(facts):
            yield Finding(
                self.kind,
                "question" if said.question else self.severity,
                tuple(said.networks),
                said.text,
                tuple(dict.fromkeys(said.places)),
                " ".join(said.cure.split()) or self.cure,
                (said.mistake,) if said.mistake else self.mistakes,
                said.facts,
            )


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of the report."""
    found = [Rule(file.name, import_module(f"{__name__}.{file.name}")) for file in pkgutil.iter_modules(__path__)]
    return tuple(sorted(found, key=lambda rule: rule.rank))


def kinds_of_mistakes() -> dict[str, list[str]]:
    """Return, by the name of a mistake, the kinds of findings that look like it."""
    kinds: dict[str, list[str]] = {}
    for rule in rules():
        for name in rule.mistakes:
            kinds.setdefault(name, []).append(rule.kind)
    return kinds
