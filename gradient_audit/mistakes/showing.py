"""Mistakes as text for a terminal."""

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib import import_module

from gradient_audit.mistakes import HELPERS, Mistake, does_as_described, load, match, names, observe, show

QUESTIONS = "Questions: docs/questions.md in the repository. 常见问题 (判别器、计算图、显存): docs/questions.zh.md"


def describe(mistake: Mistake, kinds: Sequence[str] = ()) -> str:
    """Run both forms of a mistake; return the code, what happened, why, and the cure, as text for a terminal."""
    parts = [f"{mistake.name}\n{mistake.title}"]
    if mistake.not_run:
        parts.append(_wrap("  not run here: ", mistake.not_run))
        parts += [_wrap("  message  ", f"... {phrase} ...") for phrase in mistake.messages]
    else:
        codes = [inspect.getsource(form).rstrip() for form in (mistake.wrong, mistake.right)]
        for file, helper in HELPERS.items():
            if f"{helper}()" in codes[0]:
                parts.append(
                    _wrap(f"  {helper}: ", getattr(import_module(f"gradient_audit.mistakes.{file}"), helper).__doc__)
                )
        outcomes = [observe(form) for form in (mistake.wrong, mistake.right)]
        for code, outcome in zip(codes, outcomes, strict=True):
            lines = [] if outcome.raised else [f"  returns {show(outcome.value)}"]
            message = re.sub(r" \(Triggered internally at .*\)", "", outcome.message)
            lines += [_wrap("  ", message, max_lines=8)] if message else []
            parts.append("\n".join([textwrap.indent(code, "    "), "", *lines]))
        if not does_as_described(mistake, *outcomes):
            parts.append("  note   This PyTorch does something else here than is described.")
    parts += [_wrap("  why   ", mistake.why), _wrap("  cure  ", mistake.cure)]
    if about := mistake.audit(kinds):
        parts.append(_wrap("  audit ", about))
    return "\n\n".join(parts) + "\n"


def explain(name: str | None, text: str | None, kinds: Mapping[str, Sequence[str]]) -> bool:
    """Print one mistake, those behind a message or a log, the first in full, or all; return whether there is any.

    kinds: of the audit's findings, by the name of the mistake that looks like them.
    """
    if name is None and text is None:
        print(listing(kinds))
        return True
    matches = match(text) if name is None else [load(name)]
    if len(matches) > 1:
        print("Likeliest first:", *matches, sep="\n", end="\n\n")
    nothing = "No mistake in the catalogue has this message. Without an error, audit the script, or see --list.\n"
    print(describe(matches[0], kinds.get(matches[0].name, ())) if matches else nothing, end="")
    return bool(matches)


def listing(kinds: Mapping[str, Sequence[str]]) -> str:
    """Return all mistakes, in groups, with what the audit says of each, and where questions are answered."""
    groups: dict[str, list[str]] = {}
    for mistake in map(load, names()):
        kind = "Errors of PyTorch: the audit names the line, and [what else it finds]"
        if mistake.not_run:
            kind = "Errors that are described, not run here"
        elif mistake.unseen:
            kind = "Silent, not seen by the audit: a wrong number, at best a warning"
        elif mistake.silent:
            kind = "Silent, seen by the audit: as [what it finds]"
        gap = "\n      " if mistake.unseen else " "
        groups.setdefault(kind, []).append(f"{mistake}{gap}{mistake.audit(kinds.get(mistake.name, ()))}".rstrip())
    return "\n\n".join([*("\n".join([kind, *groups[kind]]) for kind in sorted(groups)), QUESTIONS])


def _wrap(label: str, text: str, max_lines: int | None = None) -> str:
    indent = " " * len(label)
    return textwrap.fill(text, 100, initial_indent=label, subsequent_indent=indent, max_lines=max_lines)
